// SPDX-License-Identifier: Apache-2.0
//! Vultr: virtual machines with whole GPUs or parts of them, and bare metal, started from an iPXE script of ours.

pub mod fake;
mod wire;

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bivouac_market::{Gpu, Listing};
use http::header::{AUTHORIZATION, HeaderMap};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cloud::{Account, Boot, Boots, Capabilities, Cloud, Machine, Order, Owner, Pending, Prices};
use crate::credentials::{Credentials, bearer};
use crate::fault::{Fault, Operation, Outcome, gone_is_done};
use crate::pages::Cursors;
use crate::secret::Secret;
use crate::tables::Tables;
use crate::wire::{Line, Wire};
use wire::{AccountPage, Instance, MetalPlan, One, Page, Plan, System};

pub const NAME: &str = "vultr";
pub const BASE: &str = "https://api.vultr.com/v2";
/// As many as it gives at once.
const PER_PAGE: usize = 500;
/// Its number for an operating system that is not its own, should the list not name it.
const CUSTOM: u64 = 159;

static TABLES: LazyLock<Tables> = LazyLock::new(|| crate::tables::built_in(NAME, include_str!("map.yaml")));

#[derive(Debug)]
pub struct Vultr {
    wire: Wire,
}

/// Virtual and real machines live under different addresses, so their ids must tell which they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Virtual,
    Metal,
}

// === impl Kind ===

impl Kind {
    const ALL: [Self; 2] = [Self::Virtual, Self::Metal];
    const METAL: &str = "bm-";

    fn of_plan(plan: &str) -> Self {
        if plan.starts_with("vbm-") { Self::Metal } else { Self::Virtual }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Virtual => "/instances",
            Self::Metal => "/bare-metals",
        }
    }

    fn our_id(self, id: &str) -> String {
        match self {
            Self::Virtual => id.to_owned(),
            Self::Metal => format!("{}{id}", Self::METAL),
        }
    }

    /// The kind of one of our ids, and where it lives.
    fn found_at(id: &str) -> (Self, String) {
        let (kind, id) = id.strip_prefix(Self::METAL).map_or((Self::Virtual, id), |id| (Self::Metal, id));
        (kind, format!("{}/{id}", kind.path()))
    }
}

// === impl Vultr ===

impl Vultr {
    pub fn new(credentials: &Credentials, line: Line, base: &str) -> Result<Self, Fault> {
        let wire = Wire::new(NAME, base, line, &TABLES);
        let (header, redactor) = bearer(&wire, credentials.need("key").map_err(|lack| lack.fault(&wire))?)?;
        Ok(Self { wire: wire.with_headers(HeaderMap::from_iter([(AUTHORIZATION, header)])).with_redactor(redactor) })
    }

    /// All pages of a list, each thing once. It says how many there are: fewer is not the list.
    async fn all<T: DeserializeOwned>(
        &self,
        operation: Operation,
        path: &str,
        id: fn(&T) -> String,
    ) -> Result<Vec<T>, Fault> {
        let (mut all, mut seen, mut cursors) = (Vec::new(), BTreeSet::new(), Cursors::default());
        let (mut total, mut cursor) = (0, None::<String>);
        loop {
            let mut call = self.wire.get(operation, path).query("per_page", PER_PAGE);
            if let Some(cursor) = &cursor {
                call = call.query("cursor", cursor);
            }
            let page: Page<T> = call.read().await?;
            let meta = page.meta.unwrap_or_default();
            total = total.max(meta.total.unwrap_or_default());
            all.extend(page.items.into_iter().filter(|item| seen.insert(id(item))));
            cursor = cursors.next(&self.wire, operation, meta.links.unwrap_or_default().next)?;
            if cursor.is_none() {
                break;
            }
        }
        if all.len() < total {
            let says = format!("it has {total} and showed {}", all.len());
            return Err(self.wire.fault(operation, Outcome::Transient, says));
        }
        Ok(all)
    }

    /// Nothing is bought before the launch itself, so all that goes wrong here is harmless.
    async fn systems(&self) -> Result<Vec<System>, Fault> {
        let systems = self.all(Operation::List, "/os", |system: &System| system.id.to_string()).await;
        systems.map_err(|fault| Fault { operation: Operation::Launch, ..fault })
    }

    async fn newest_ubuntu(&self, order: &Order) -> Result<u64, Fault> {
        let arch = if Gpu::named(&order.gpu).fits(&Gpu::named("GH200")) { "arm64" } else { "x64" };
        let systems = self.systems().await?;
        let ranked = systems.iter().filter_map(|system| Some((system.ubuntu(arch)?, system.id)));
        let best = ranked.max().map(|(_, id)| id);
        best.ok_or_else(|| self.wire.fault(Operation::Launch, Outcome::Invalid, "it has no Ubuntu to start with"))
    }

    /// What the machine starts with, and what goes along.
    async fn start<'a>(&self, order: &'a Order) -> Result<(Value, &'a Secret), Fault> {
        let invalid = |says: &str| self.wire.fault(Operation::Launch, Outcome::Invalid, says);
        match &order.boot {
            Boot::Talos { image, config } => {
                let systems = self.systems().await?;
                let custom = systems.iter().find(|system| system.is_custom()).map_or(CUSTOM, |system| system.id);
                Ok((json!({ "os_id": custom, "ipxe_chain_url": image }), config))
            }
            Boot::CloudInit { image: None, user_data } => {
                Ok((json!({ "os_id": self.newest_ubuntu(order).await? }), user_data))
            }
            Boot::CloudInit { image: Some(image), user_data } => {
                let id: u64 = image.parse().map_err(|_| invalid("its operating systems have numbers for names"))?;
                Ok((json!({ "os_id": id }), user_data))
            }
            Boot::Container { .. } => Err(invalid("it sells machines, not containers")),
        }
    }

    async fn buy(&self, order: &Order) -> Result<Machine, Fault> {
        let kind = Kind::of_plan(&order.machine);
        let (mut body, user_data) = self.start(order).await?;
        let tags: Vec<String> = order.marks().into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        let more = json!({
            "region": order.region,
            "plan": order.machine,
            "label": order.name(),
            "hostname": order.name(),
            "tags": tags,
            "user_data": STANDARD.encode(user_data.reveal()),
            "activation_email": false,
        });
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
            if kind == Kind::Virtual {
                body.insert("backups".to_owned(), json!("disabled"));
            }
        }
        let launched: One = self.wire.post(Operation::Launch, kind.path()).json(&body).read().await?;
        Ok(launched.machine.machine(kind))
    }
}

impl Cloud for Vultr {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            boots: Boots::Talos,
            spot: false,
            kill_timer: false,
            idempotent_launch: false,
            prices: Prices::Api,
            settles_within: Duration::from_secs(60),
            user_data_limit: 64 << 10,
        }
    }

    fn offers(&self) -> Pending<'_, Vec<Listing>> {
        Box::pin(async move {
            let plans = self.all(Operation::Offers, "/plans?type=vcg", |plan: &Plan| plan.id.clone()).await?;
            let metal = self.all(Operation::Offers, "/plans-metal", |plan: &MetalPlan| plan.id.clone()).await?;
            let virtual_ones = plans.into_iter().flat_map(Plan::listings);
            Ok(virtual_ones.chain(metal.into_iter().flat_map(MetalPlan::listings)).collect())
        })
    }

    fn launch<'a>(&'a self, order: &'a Order) -> Pending<'a, Machine> {
        Box::pin(self.buy(order))
    }

    fn describe<'a>(&'a self, id: &'a str) -> Pending<'a, Machine> {
        Box::pin(async move {
            let (kind, path) = Kind::found_at(id);
            let found: One = self.wire.get(Operation::Describe, path).read().await?;
            Ok(found.machine.machine(kind))
        })
    }

    /// It could look for the tag itself, but would then hide a machine that lost its tags.
    fn list<'a>(&'a self, owner: &'a Owner) -> Pending<'a, Vec<Machine>> {
        Box::pin(async move {
            let mut ours = Vec::new();
            for kind in Kind::ALL {
                let all = self.all(Operation::List, kind.path(), |one: &Instance| one.id.clone()).await?;
                let right = all.into_iter().filter(|instance| instance.belongs_to(owner));
                ours.extend(right.map(|instance| instance.machine(kind)));
            }
            Ok(ours)
        })
    }

    fn terminate<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(
            async move { gone_is_done(self.wire.delete(Operation::Terminate, Kind::found_at(id).1).accepted().await) },
        )
    }

    fn verify(&self) -> Pending<'_, Account> {
        Box::pin(async move {
            let page: AccountPage = self.wire.get(Operation::Verify, "/account").read().await?;
            Ok(page.account())
        })
    }
}
