// SPDX-License-Identifier: Apache-2.0
//! Shadeform: one door to the machines of many clouds, which it can be told to end at a time or at a sum.

pub mod fake;
mod wire;

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bivouac_core::Money;
use bivouac_market::Listing;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::cloud::{Account, Boot, Boots, Capabilities, Cloud, Machine, Order, Owner, Pending, Prices};
use crate::credentials::{Credentials, Lack};
use crate::fault::{Fault, Operation, Outcome, gone_is_done};
use crate::secret::Redactor;
use crate::tables::Tables;
use crate::wire::{Line, Wire};
use wire::{Instance, Instances, Launched, Types};

pub const NAME: &str = "shadeform";
pub const BASE: &str = "https://api.shadeform.ai/v1";
const KEY: HeaderName = HeaderName::from_static("x-api-key");

static TABLES: LazyLock<Tables> = LazyLock::new(|| crate::tables::built_in(NAME, include_str!("map.yaml")));

#[derive(Debug)]
pub struct Shadeform {
    wire: Wire,
}

// === impl Shadeform ===

impl Shadeform {
    pub fn new(credentials: &Credentials, line: Line, base: &str) -> Result<Self, Fault> {
        let wire = Wire::new(NAME, base, line, &TABLES);
        let key = credentials.need("key").map_err(|lack| lack.fault(&wire))?;
        let mut header = HeaderValue::from_str(key.reveal()).map_err(|_| {
            let why = "it has letters that no header can have".to_owned();
            Lack::Unusable { field: "key".to_owned(), why }.fault(&wire)
        })?;
        header.set_sensitive(true);
        let redactor = Redactor::new([key]);
        Ok(Self { wire: wire.with_headers(HeaderMap::from_iter([(KEY, header)])).with_redactor(redactor) })
    }

    /// The newest system that the type can be had with. `None` leaves the choice to Shadeform.
    async fn newest_system(&self, cloud: &str, kind: &str) -> Result<Option<String>, Fault> {
        // Nothing is bought before the launch itself, so all that goes wrong here is harmless.
        let call = self.wire.get(Operation::Offers, "/instances/types").query("cloud", cloud);
        let types: Types = call.query("shade_instance_type", kind).read().await?;
        Ok(types.newest_system(cloud, kind))
    }

    async fn buy(&self, order: &Order) -> Result<Machine, Fault> {
        let invalid = |says: &str| self.wire.fault(Operation::Launch, Outcome::Invalid, says);
        let Boot::CloudInit { image, user_data } = &order.boot else {
            return Err(invalid("it starts a Linux of the cloud behind it with a script only"));
        };
        let Some((cloud, kind)) = order.machine.split_once('/') else {
            return Err(invalid("a machine of it is called by its cloud and its type, with a slash between"));
        };
        let system = match image {
            Some(image) => Some(image.clone()),
            None => {
                let newest = self.newest_system(cloud, kind).await;
                newest.map_err(|fault| Fault { operation: Operation::Launch, ..fault })?
            }
        };
        let tags: Vec<String> = order.marks().into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        let script = json!({ "base64_script": STANDARD.encode(user_data.reveal()) });
        let mut body = json!({
            "cloud": cloud,
            "region": order.region,
            "shade_instance_type": kind,
            "shade_cloud": true,
            "name": order.name(),
            "launch_configuration": { "type": "script", "script_configuration": script },
            "tags": tags,
        });
        let more = [("os", system.map(Value::from)), ("auto_delete", auto_delete(order))];
        if let Some(body) = body.as_object_mut() {
            body.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        }
        let launched: Launched = self.wire.post(Operation::Launch, "/instances/create").json(&body).read().await?;
        if launched.id.is_empty() {
            return Err(self.wire.fault(Operation::Launch, Outcome::Ambiguous, "it accepted, and named no machine"));
        }
        Ok(Machine::ordered(order, launched.id, "creating"))
    }

    async fn all(&self, operation: Operation) -> Result<Vec<Instance>, Fault> {
        let all: Instances = self.wire.get(operation, "/instances").read().await?;
        Ok(all.instances)
    }
}

impl Cloud for Shadeform {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            boots: Boots::CloudInit,
            spot: false,
            kill_timer: true,
            idempotent_launch: false,
            prices: Prices::Api,
            settles_within: Duration::from_secs(120),
            user_data_limit: 64 << 10,
        }
    }

    fn offers(&self) -> Pending<'_, Vec<Listing>> {
        Box::pin(async move {
            let types: Types = self.wire.get(Operation::Offers, "/instances/types").read().await?;
            Ok(types.listings())
        })
    }

    fn launch<'a>(&'a self, order: &'a Order) -> Pending<'a, Machine> {
        Box::pin(self.buy(order))
    }

    fn describe<'a>(&'a self, id: &'a str) -> Pending<'a, Machine> {
        Box::pin(async move {
            let call = self.wire.get(Operation::Describe, format!("/instances/{id}/info"));
            Ok(call.read::<Instance>().await?.machine())
        })
    }

    fn list<'a>(&'a self, owner: &'a Owner) -> Pending<'a, Vec<Machine>> {
        Box::pin(async move {
            let mut seen = BTreeSet::new();
            let all = self.all(Operation::List).await?.into_iter();
            let ours = all.filter(|instance| instance.belongs_to(owner) && seen.insert(instance.id.clone()));
            Ok(ours.map(Instance::machine).collect())
        })
    }

    fn terminate<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            gone_is_done(self.wire.post(Operation::Terminate, format!("/instances/{id}/delete")).accepted().await)
        })
    }

    /// It tells nothing about the account; whoever may list is known.
    fn verify(&self) -> Pending<'_, Account> {
        Box::pin(async move { self.all(Operation::Verify).await.map(|_| Account::default()) })
    }
}

/// When Shadeform ends the machine on its own: at a time, and when it has cost what it may until then.
fn auto_delete(order: &Order) -> Option<Value> {
    let after = order.kill_after?;
    let date = order.now.checked_add(after).ok()?;
    let spend = order.price.checked_cost_of(after).filter(|spend| *spend > Money::ZERO);
    let mut limits = json!({ "date_threshold": date.to_string() });
    if let (Some(spend), Some(limits)) = (spend, limits.as_object_mut()) {
        limits.insert("spend_threshold".to_owned(), json!(whole_cents(spend).to_string()));
    }
    Some(limits)
}

/// A sum of money has two decimals there. More is better than an end too early.
fn whole_cents(sum: Money) -> Money {
    let cents = sum.micros().saturating_add(9_999).div_euclid(10_000);
    Money::from_micros(cents.saturating_mul(10_000))
}
