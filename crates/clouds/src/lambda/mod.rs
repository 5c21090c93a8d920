// SPDX-License-Identifier: Apache-2.0
//! Lambda Cloud: virtual machines with Ubuntu and drivers, no spot, prices in cents.

pub mod fake;

use std::sync::LazyLock;

use bivouac_market::{Arch, Listing};
use http::header::{AUTHORIZATION, HeaderMap};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cloud::{Account, Boot, Boots, Capabilities, Cloud, Machine, Order, Owner, Pending, Prices, State};
use crate::credentials::{Credentials, bearer};
use crate::fault::{Fault, Operation, Outcome, gone_is_done};
use crate::read;
use crate::tables::Tables;
use crate::wire::{Line, Wire};

pub const NAME: &str = "lambda";
pub const BASE: &str = "https://cloud.lambda.ai/api/v1";
const IMAGE: &str = "lambda-stack-24-04";

static TABLES: LazyLock<Tables> = LazyLock::new(|| crate::tables::built_in(NAME, include_str!("map.yaml")));

#[derive(Debug)]
pub struct Lambda {
    wire: Wire,
}

/// Everything comes in an envelope.
#[derive(Debug, Deserialize)]
struct Data<T> {
    data: T,
}

#[derive(Debug, Deserialize)]
struct Type {
    instance_type: Described,
    regions_with_capacity_available: Vec<Region>,
}

#[derive(Debug, Deserialize)]
struct Described {
    name: String,
    #[serde(default)]
    description: String,
    price_cents_per_hour: Value,
    specs: Specs,
}

#[derive(Debug, Deserialize)]
struct Specs {
    vcpus: u32,
    memory_gib: u32,
    #[serde(default)]
    gpus: u32,
}

#[derive(Debug, Deserialize)]
struct Region {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Instance {
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    ip: Option<String>,
    #[serde(default)]
    private_ip: Option<String>,
    status: String,
    #[serde(default)]
    region: Option<Region>,
    #[serde(default)]
    instance_type: Option<Priced>,
    #[serde(default)]
    tags: Option<Vec<Tag>>,
}

#[derive(Debug, Deserialize)]
struct Priced {
    #[serde(default)]
    price_cents_per_hour: Value,
}

#[derive(Debug, Deserialize)]
struct Tag {
    key: String,
    value: String,
}

#[derive(Debug, Deserialize)]
struct Launched {
    instance_ids: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Key {
    name: String,
}

// === impl Lambda ===

impl Lambda {
    pub fn new(credentials: &Credentials, line: Line, base: &str) -> Result<Self, Fault> {
        let wire = Wire::new(NAME, base, line, &TABLES);
        let (header, redactor) = bearer(&wire, credentials.need("key").map_err(|lack| lack.fault(&wire))?)?;
        Ok(Self { wire: wire.with_headers(HeaderMap::from_iter([(AUTHORIZATION, header)])).with_redactor(redactor) })
    }

    /// A launch names exactly one SSH key. Ours is made by Lambda and its private half is thrown away: nobody needs it.
    async fn ssh_key(&self, owner: &Owner) -> Result<String, Fault> {
        let name = format!("tgp-{}", owner.0);
        // Nothing is bought before the launch itself, so all that goes wrong here is harmless.
        let keys: Data<Vec<Key>> = self.wire.get(Operation::List, "/ssh-keys").read().await?;
        if !keys.data.iter().any(|key| key.name == name) {
            self.wire.post(Operation::List, "/ssh-keys").json(&json!({ "name": name })).accepted().await?;
        }
        Ok(name)
    }

    async fn buy(&self, order: &Order) -> Result<Machine, Fault> {
        let Boot::CloudInit { image, user_data } = &order.boot else {
            return Err(self.wire.fault(
                Operation::Launch,
                Outcome::Invalid,
                "it starts its own Ubuntu with cloud-init only",
            ));
        };
        let key = self.ssh_key(&order.owner).await.map_err(|fault| Fault { operation: Operation::Launch, ..fault })?;
        let tags: Vec<Value> =
            order.marks().into_iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
        let body = json!({
            "region_name": order.region,
            "instance_type_name": order.machine,
            "ssh_key_names": [key],
            "name": order.name(),
            "hostname": order.name(),
            "image": { "family": image.as_deref().unwrap_or(IMAGE) },
            "tags": tags,
            "user_data": user_data.reveal(),
        });
        let call = self.wire.post(Operation::Launch, "/instance-operations/launch").json(&body);
        let launched: Data<Launched> = call.read().await?;
        let Some(id) = launched.data.instance_ids.into_iter().next() else {
            return Err(self.wire.fault(Operation::Launch, Outcome::Ambiguous, "it accepted, and named no machine"));
        };
        Ok(Machine::ordered(order, id, "booting"))
    }
}

impl Cloud for Lambda {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            boots: Boots::CloudInit,
            spot: false,
            kill_timer: false,
            idempotent_launch: false,
            prices: Prices::Api,
            settles_within: std::time::Duration::from_secs(60),
            user_data_limit: 1 << 20,
        }
    }

    fn offers(&self) -> Pending<'_, Vec<Listing>> {
        Box::pin(async move {
            let call = self.wire.get(Operation::Offers, "/instance-types");
            let types: Data<std::collections::BTreeMap<String, Type>> = call.read().await?;
            Ok(types.data.into_values().flat_map(Type::listings).collect())
        })
    }

    fn launch<'a>(&'a self, order: &'a Order) -> Pending<'a, Machine> {
        Box::pin(self.buy(order))
    }

    fn describe<'a>(&'a self, id: &'a str) -> Pending<'a, Machine> {
        Box::pin(async move {
            let found: Data<Instance> = self.wire.get(Operation::Describe, format!("/instances/{id}")).read().await?;
            Ok(found.data.machine())
        })
    }

    fn list<'a>(&'a self, owner: &'a Owner) -> Pending<'a, Vec<Machine>> {
        Box::pin(async move {
            let all: Data<Vec<Instance>> = self.wire.get(Operation::List, "/instances").read().await?;
            let ours = all.data.into_iter().filter(|instance| instance.belongs_to(owner));
            Ok(ours.map(|instance| instance.machine()).collect())
        })
    }

    fn terminate<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let call = self.wire.post(Operation::Terminate, "/instance-operations/terminate");
            gone_is_done(call.json(&json!({ "instance_ids": [id] })).accepted().await)
        })
    }

    fn verify(&self) -> Pending<'_, Account> {
        Box::pin(async move {
            let _: Data<Vec<Instance>> = self.wire.get(Operation::Verify, "/instances").read().await?;
            Ok(Account::default())
        })
    }
}

// === impl Type ===

impl Type {
    /// One for each region that has some; none has any: one that is sold out.
    fn listings(self) -> Vec<Listing> {
        let Described { name, description, price_cents_per_hour, specs } = self.instance_type;
        let gpu = gpu_of(&name).to_owned();
        let like = Listing {
            gpu_memory_gib: memory_of(&description),
            gpus: specs.gpus.saturating_mul(1000),
            vcpus: specs.vcpus.saturating_mul(1000),
            memory_mib: specs.memory_gib.saturating_mul(1024),
            arch: if gpu.starts_with("gh200") { Arch::Arm64 } else { Arch::Amd64 },
            on_demand: read::cents(&price_cents_per_hour),
            machine: name,
            gpu,
            ..Listing::default()
        };
        if self.regions_with_capacity_available.is_empty() {
            return vec![Listing { sold_out: true, ..like }];
        }
        let regions = self.regions_with_capacity_available.into_iter();
        regions.map(|region| Listing { region: region.name, ..like.clone() }).collect()
    }
}

/// `gpu_8x_a100_80gb_sxm4` has `a100_80gb_sxm4`.
fn gpu_of(machine: &str) -> &str {
    let counted = machine.strip_prefix("gpu_").and_then(|rest| rest.split_once("x_"));
    counted.map_or("", |(_, gpu)| gpu)
}

/// `1x A10 (24 GB PCIe)` says how much memory one has.
fn memory_of(description: &str) -> Option<u16> {
    let (_, inside) = description.split_once('(')?;
    inside.split_once(" GB")?.0.trim().parse().ok()
}

// === impl Instance ===

impl Instance {
    fn tag(&self, key: &str) -> Option<&str> {
        self.tags.iter().flatten().find(|tag| tag.key == key).map(|tag| tag.value.as_str())
    }

    fn belongs_to(&self, owner: &Owner) -> bool {
        let named = self.name.as_ref().is_some_and(|name| name.starts_with(&owner.prefix()));
        self.tag("tgp-cluster").map_or(named, |cluster| cluster == owner.0)
    }

    fn machine(self) -> Machine {
        let public_ip = read::address(self.ip.as_deref());
        let state = match TABLES.state(&self.status) {
            // It says that it is active before anybody can reach it.
            State::Running if public_ip.is_none() => State::Pending,
            state => state,
        };
        let created = self.tag("tgp-created").and_then(|text| text.parse().ok());
        Machine {
            claim: self.tag("tgp-claim").map(str::to_owned),
            created: created.and_then(|second| jiff::Timestamp::from_second(second).ok()),
            name: self.name.clone().unwrap_or_default(),
            id: self.id,
            state,
            word: self.status,
            public_ip,
            private_ip: read::address(self.private_ip.as_deref()),
            price: self.instance_type.and_then(|priced| read::cents(&priced.price_cents_per_hour)),
            ended: None,
            region: self.region.map(|region| region.name).unwrap_or_default(),
        }
    }
}
