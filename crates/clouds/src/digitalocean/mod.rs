// SPDX-License-Identifier: Apache-2.0
//! DigitalOcean: GPU Droplets, started from a custom image or from its own Ubuntu with drivers.

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
use crate::tables::Tables;
use crate::wire::{Line, Wire};
use wire::{AccountPage, Balance, Droplet, Key, MadeKey, One, Page, Size};

pub const NAME: &str = "digitalocean";
pub const BASE: &str = "https://api.digitalocean.com/v2";
/// As many as it gives at once.
const PER_PAGE: usize = 200;

static TABLES: LazyLock<Tables> = LazyLock::new(|| crate::tables::built_in(NAME, include_str!("map.yaml")));

#[derive(Debug)]
pub struct DigitalOcean {
    wire: Wire,
}

// === impl DigitalOcean ===

impl DigitalOcean {
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
        filter: Option<(&str, &str)>,
        id: fn(&T) -> String,
    ) -> Result<Vec<T>, Fault> {
        let (mut all, mut seen, mut cursors) = (Vec::new(), BTreeSet::new(), Cursors::default());
        let (mut total, mut number) = (0, None::<String>);
        loop {
            let mut call = self.wire.get(operation, path).query("per_page", PER_PAGE);
            for (key, value) in filter.into_iter().chain(number.as_deref().map(|number| ("page", number))) {
                call = call.query(key, value);
            }
            let page: Page<T> = call.read().await?;
            total = total.max(page.meta.unwrap_or_default().total.unwrap_or_default());
            all.extend(page.items.into_iter().filter(|item| seen.insert(id(item))));
            let next = match page.links.and_then(|links| links.next()) {
                Some(None) => {
                    return Err(self.wire.fault(
                        operation,
                        Outcome::Transient,
                        "it names a next page without a number",
                    ));
                }
                next => next.flatten(),
            };
            number = cursors.next(&self.wire, operation, next)?;
            if number.is_none() {
                break;
            }
        }
        if all.len() < total {
            let says = format!("it has {total} and showed {}", all.len());
            return Err(self.wire.fault(operation, Outcome::Transient, says));
        }
        Ok(all)
    }

    /// Images that are not its own must be started with an SSH key, whether anybody uses it or not.
    async fn ssh_key(&self, owner: &Owner) -> Result<u64, Fault> {
        let name = format!("tgp-{}", owner.0);
        // Nothing is bought before the launch itself, so all that goes wrong here is harmless.
        let keys: Vec<Key> = self.all(Operation::List, "/account/keys", None, |key: &Key| key.id.to_string()).await?;
        if let Some(key) = keys.iter().find(|key| key.name.as_ref() == Some(&name)) {
            return Ok(key.id);
        }
        let body = json!({ "name": name, "public_key": nobodys_key(owner) });
        let made: MadeKey = self.wire.post(Operation::List, "/account/keys").json(&body).read().await?;
        Ok(made.ssh_key.id)
    }

    async fn buy(&self, order: &Order) -> Result<Machine, Fault> {
        let (image, user_data) = match &order.boot {
            Boot::Talos { image, config } => (image_of(image), config),
            Boot::CloudInit { image, user_data } => (image_of(image.as_deref().unwrap_or(own_image(order))), user_data),
            Boot::Container { .. } => {
                let says = "it sells machines, not containers";
                return Err(self.wire.fault(Operation::Launch, Outcome::Invalid, says));
            }
        };
        let key = self.ssh_key(&order.owner).await.map_err(|fault| Fault { operation: Operation::Launch, ..fault })?;
        let tags: Vec<String> = order.marks().iter().map(|(key, value)| wire::tag(key, value)).collect();
        let body = json!({
            "name": order.name(),
            "region": order.region,
            "size": order.machine,
            "image": image,
            "ssh_keys": [key],
            "tags": tags,
            "user_data": user_data.reveal(),
        });
        let launched: One = self.wire.post(Operation::Launch, "/droplets").json(&body).read().await?;
        Ok(launched.droplet.machine())
    }
}

impl Cloud for DigitalOcean {
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
            let sizes = self.all(Operation::Offers, "/sizes", None, |size: &Size| size.slug.clone()).await?;
            Ok(sizes.into_iter().flat_map(Size::listings).collect())
        })
    }

    fn launch<'a>(&'a self, order: &'a Order) -> Pending<'a, Machine> {
        Box::pin(self.buy(order))
    }

    fn describe<'a>(&'a self, id: &'a str) -> Pending<'a, Machine> {
        Box::pin(async move {
            let found: One = self.wire.get(Operation::Describe, format!("/droplets/{id}")).read().await?;
            Ok(found.droplet.machine())
        })
    }

    /// Those with our tag, and all with a GPU: a plain list leaves out those with a GPU, and a list by tag leaves out
    /// those that lost their tags.
    fn list<'a>(&'a self, owner: &'a Owner) -> Pending<'a, Vec<Machine>> {
        Box::pin(async move {
            let mark = wire::tag("tgp-cluster", &owner.0);
            let (mut ours, mut seen) = (Vec::new(), BTreeSet::new());
            for filter in [("tag_name", mark.as_str()), ("type", "gpus")] {
                let id = |droplet: &Droplet| droplet.id.to_string();
                let found = self.all(Operation::List, "/droplets", Some(filter), id).await?;
                let right = found.into_iter().filter(|droplet| droplet.belongs_to(owner) && seen.insert(droplet.id));
                ours.extend(right.map(Droplet::machine));
            }
            Ok(ours)
        })
    }

    fn terminate<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            gone_is_done(self.wire.delete(Operation::Terminate, format!("/droplets/{id}")).accepted().await)
        })
    }

    fn verify(&self) -> Pending<'_, Account> {
        Box::pin(async move {
            let page: AccountPage = self.wire.get(Operation::Verify, "/account").read().await?;
            let mut account = page.account();
            // A key may be good for machines and not for money.
            match self.wire.get(Operation::Verify, "/customers/my/balance").read::<Balance>().await {
                Ok(balance) => account.balance = balance.in_hand(),
                Err(fault) => account.notes.push(format!("the balance cannot be read: {}", fault.outcome.name())),
            }
            Ok(account)
        })
    }
}

/// Its own images have names and those of customers have numbers.
fn image_of(image: &str) -> Value {
    image.parse::<u64>().map_or_else(|_| json!(image), |number| json!(number))
}

/// Ubuntu with the drivers for what is in the machine.
fn own_image(order: &Order) -> &'static str {
    let is_amd = Gpu::named(&order.gpu).vendor().is_some_and(|vendor| vendor.name() == "amd");
    match order.gpus {
        0 => "ubuntu-24-04-x64",
        _ if is_amd => "gpu-amd-base",
        8000 => "gpu-h100x8-base",
        _ => "gpu-h100x1-base",
    }
}

/// The public half of an SSH key whose private half nobody has: its number is a sentence.
fn nobodys_key(owner: &Owner) -> String {
    let mut number = format!("no door opens with {:.<13}", owner.0).into_bytes();
    number.truncate(32);
    let mut blob = Vec::new();
    for part in [b"ssh-ed25519".as_slice(), &number] {
        blob.extend(u32::try_from(part.len()).unwrap_or_default().to_be_bytes());
        blob.extend_from_slice(part);
    }
    format!("ssh-ed25519 {} tgp-{}", STANDARD.encode(blob), owner.0)
}
