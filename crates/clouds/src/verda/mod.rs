// SPDX-License-Identifier: Apache-2.0
//! Verda, once DataCrunch: virtual machines with Ubuntu and drivers, on demand and spot. Volumes outlive their machine
//! unless they are named when it ends.

pub mod fake;
mod session;
mod wire;

use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bivouac_market::{Capacity, Listing};
use http::Method;
use serde_json::{Value, json};

use crate::cloud::{Account, Boot, Boots, Capabilities, Cloud, Machine, Order, Owner, Pending, Prices};
use crate::credentials::Credentials;
use crate::fault::{Fault, Operation, Outcome, gone_is_done};
use crate::read;
use crate::script::as_script;
use crate::secret::Redactor;
use crate::tables::Tables;
use crate::wire::{Line, Reply, Wire};
use session::Sessions;
use wire::{Available, Balance, Instance, Key, Location, Script, Stock, Type};

pub const NAME: &str = "verda";
pub const BASE: &str = "https://api.verda.com/v1";
const IMAGE: &str = "ubuntu-24.04-cuda-12.8-open-docker";
/// For chips that the newer one does not start on.
const OLDER_IMAGE: &str = "ubuntu-22.04-cuda-12.0-docker";
/// An image does not fit on less.
const LEAST_DISK: u32 = 50;

static TABLES: LazyLock<Tables> = LazyLock::new(|| crate::tables::built_in(NAME, include_str!("map.yaml")));

#[derive(Debug)]
pub struct Verda {
    sessions: Sessions,
    /// What we ended ourselves: a spot machine that is gone looks the same as one that was taken.
    ended: Mutex<BTreeSet<String>>,
}

// === impl Verda ===

impl Verda {
    pub fn new(credentials: &Credentials, line: Line, base: &str) -> Result<Self, Fault> {
        let sessions = Sessions::new(Wire::new(NAME, base, line, &TABLES), credentials)?;
        Ok(Self { sessions, ended: Mutex::default() })
    }

    /// A refused token is forgotten, so that the next question brings a new one.
    async fn minding<T>(&self, answer: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let answer = answer.await;
        if matches!(&answer, Err(fault) if fault.outcome == Outcome::Unauthorized) {
            self.sessions.end().await;
        }
        answer
    }

    async fn market(&self) -> Result<Vec<Listing>, Fault> {
        let on = Operation::Offers;
        let wire = self.sessions.wire(on).await?;
        let types: Vec<Type> = wire.get(on, "/instance-types").query("currency", "usd").read().await?;
        let stock = async |is_spot: bool| {
            let call = wire.get(on, "/instance-availability").query("is_spot", is_spot);
            call.read::<Vec<Available>>().await.map(Stock::of)
        };
        let (on_demand, spot) = (stock(false).await?, stock(true).await?);
        let locations: Vec<Location> = wire.get(on, "/locations").read().await?;
        let mut places: BTreeSet<String> = locations.into_iter().map(|location| location.code).collect();
        places.extend(on_demand.places().chain(spot.places()).cloned());
        Ok(types.iter().flat_map(|one| one.listings(&places, &on_demand, &spot)).collect())
    }

    async fn buy(&self, order: &Order) -> Result<Machine, Fault> {
        let on = Operation::Launch;
        let Boot::CloudInit { image, user_data } = &order.boot else {
            let says = "it starts its own Ubuntu with a script only";
            return Err(self.sessions.plain().fault(on, Outcome::Invalid, says));
        };
        // Nothing is bought before the launch itself, so all that goes wrong here is harmless.
        let wire = self.sessions.wire(on).await?;
        let keys: Vec<Key> = wire.get(Operation::Verify, "/sshkeys").read().await.map_err(before_launch)?;
        let text = as_script(&order.name(), user_data.reveal());
        let made = json!({ "name": order.name(), "script": text });
        let made = wire.post(Operation::Verify, "/scripts").json(&made).accepted().await;
        let script = match made.and_then(|reply| id_of(&wire, Operation::Verify, &reply)) {
            Ok(script) => script,
            Err(fault) => {
                // It may have been made all the same.
                let _ = drop_scripts(&wire, Operation::Verify, &order.name()).await;
                return Err(before_launch(fault));
            }
        };
        let body = instance(order, image.as_deref(), &script, &keys);
        let sent = wire.post(on, "/instances").json(&body).accepted().await;
        match sent.and_then(|reply| id_of(&wire, on, &reply)) {
            Ok(id) => Ok(Machine::ordered(order, id, "ordered")),
            Err(fault) => {
                // A machine that may be there needs it; the end of the machine is the end of it.
                if fault.outcome != Outcome::Ambiguous {
                    let _ = drop_script(&wire, Operation::Verify, &script).await;
                }
                Err(fault)
            }
        }
    }

    fn has_ended(&self, id: &str) -> bool {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    async fn look(&self, id: &str) -> Result<Machine, Fault> {
        let wire = self.sessions.wire(Operation::Describe).await?;
        let found: Instance = wire.get(Operation::Describe, format!("/instances/{id}")).read().await?;
        Ok(found.machine(self.has_ended(id)))
    }

    async fn all(&self, owner: &Owner) -> Result<Vec<Machine>, Fault> {
        let wire = self.sessions.wire(Operation::List).await?;
        let all: Vec<Instance> = wire.get(Operation::List, "/instances").read().await?;
        let ours = all.into_iter().filter(|instance| instance.belongs_to(owner));
        let told = ours.map(|instance| {
            let ended = self.has_ended(&instance.id);
            instance.machine(ended)
        });
        let mut seen = BTreeSet::new();
        Ok(told.filter(|machine| seen.insert(machine.id.clone())).collect())
    }

    async fn end(&self, id: &str) -> Result<(), Fault> {
        let on = Operation::Terminate;
        let wire = self.sessions.wire(on).await?;
        let found = match wire.get(on, format!("/instances/{id}")).read::<Instance>().await {
            Ok(found) => Some(found),
            Err(fault) if fault.outcome == Outcome::NotFound => None,
            // Without its volumes it is not ended: nobody would find them again.
            Err(fault) => return Err(fault),
        };
        if !found.as_ref().is_some_and(Instance::is_over) {
            let body = json!({
                "id": id,
                "action": "delete",
                "volume_ids": found.as_ref().map(Instance::volumes).unwrap_or_default(),
                "delete_permanently": true,
            });
            gone_is_done(wire.call(on, Method::PUT, "/instances").json(&body).accepted().await)?;
        }
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        let Some(found) = found else { return Ok(()) };
        match found.startup_script_id.as_deref().filter(|script| !script.is_empty()) {
            Some(script) => drop_script(&wire, on, script).await,
            None => drop_scripts(&wire, on, found.hostname.as_deref().unwrap_or_default()).await,
        }
    }

    async fn check(&self) -> Result<Account, Fault> {
        let wire = self.sessions.wire(Operation::Verify).await?;
        let balance: Balance = wire.get(Operation::Verify, "/balance").read().await?;
        let in_dollars = balance.currency.as_deref().is_none_or(|currency| currency.eq_ignore_ascii_case("usd"));
        let mut account = Account::default();
        match balance.currency {
            Some(currency) if !in_dollars => account.notes.push(format!("The balance is in {currency}.")),
            _ => account.balance = read::dollars(&balance.amount),
        }
        Ok(account)
    }
}

impl Cloud for Verda {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            boots: Boots::CloudInit,
            spot: true,
            kill_timer: false,
            idempotent_launch: false,
            prices: Prices::Api,
            settles_within: Duration::from_secs(60),
            user_data_limit: 64 << 10,
        }
    }

    fn offers(&self) -> Pending<'_, Vec<Listing>> {
        Box::pin(self.minding(self.market()))
    }

    fn launch<'a>(&'a self, order: &'a Order) -> Pending<'a, Machine> {
        let bought = self.minding(self.buy(order));
        Box::pin(async move { bought.await.map_err(|fault| without_secrets(fault, order)) })
    }

    fn describe<'a>(&'a self, id: &'a str) -> Pending<'a, Machine> {
        Box::pin(self.minding(self.look(id)))
    }

    fn list<'a>(&'a self, owner: &'a Owner) -> Pending<'a, Vec<Machine>> {
        Box::pin(self.minding(self.all(owner)))
    }

    fn terminate<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(self.minding(self.end(id)))
    }

    /// Its script holds what nobody else may know.
    fn abandon<'a>(&'a self, name: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let wire = self.sessions.wire(Operation::Terminate).await?;
            drop_scripts(&wire, Operation::Terminate, name).await
        })
    }

    fn verify(&self) -> Pending<'_, Account> {
        Box::pin(self.minding(self.check()))
    }
}

/// What `POST /instances` wants.
fn instance(order: &Order, image: Option<&str>, script: &str, keys: &[Key]) -> Value {
    let spot = order.capacity == Capacity::Spot;
    let older = ["V100", "A6000"].iter().any(|chip| order.machine.contains(chip));
    let size = order.disk_gib.max(LEAST_DISK);
    let mut volume = json!({ "name": order.name(), "size": size });
    if let (true, Some(volume)) = (spot, volume.as_object_mut()) {
        // Otherwise it stays when the cloud takes the machine, and is paid for.
        volume.insert("on_spot_discontinue".to_owned(), json!("delete_permanently"));
    }
    json!({
        "instance_type": order.machine,
        "image": image.unwrap_or(if older { OLDER_IMAGE } else { IMAGE }),
        "hostname": order.name(),
        "description": format!("tgp-cluster={} tgp-claim={} tgp-pool={}", order.owner.0, order.claim, order.pool),
        "ssh_key_ids": keys.iter().map(|key| key.id.as_str()).collect::<Vec<_>>(),
        "startup_script_id": script,
        "location_code": order.region,
        "is_spot": spot,
        "contract": if spot { "SPOT" } else { "PAY_AS_YOU_GO" },
        "pricing": "FIXED_PRICE",
        "os_volume": volume,
    })
}

/// The whole answer is an id, with or without quotes. Half of one is none.
fn id_of(wire: &Wire, operation: Operation, reply: &Reply) -> Result<String, Fault> {
    let text = String::from_utf8_lossy(&reply.body);
    let id = text.trim().trim_matches('"');
    let groups: Vec<usize> = id.split('-').map(str::len).collect();
    let is_id = groups == [8, 4, 4, 4, 12] && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    if is_id { Ok(id.to_owned()) } else { Err(wire.nonsense(operation, reply, "it is no id")) }
}

async fn drop_scripts(wire: &Wire, operation: Operation, name: &str) -> Result<(), Fault> {
    let scripts: Vec<Script> = wire.get(operation, "/scripts").read().await?;
    for script in scripts.iter().filter(|script| !name.is_empty() && script.name.as_deref() == Some(name)) {
        drop_script(wire, operation, &script.id).await?;
    }
    Ok(())
}

async fn drop_script(wire: &Wire, operation: Operation, id: &str) -> Result<(), Fault> {
    gone_is_done(wire.delete(operation, format!("/scripts/{id}")).accepted().await)
}

/// The fault of a launch that was not sent.
fn before_launch(fault: Fault) -> Fault {
    let outcome = if fault.outcome == Outcome::NotFound { Outcome::Transient } else { fault.outcome };
    Fault { operation: Operation::Launch, outcome, ..fault }
}

/// A refusal may quote the script.
fn without_secrets(fault: Fault, order: &Order) -> Fault {
    let Boot::CloudInit { user_data, .. } = &order.boot else { return fault };
    let says = Redactor::new([user_data]).clean(&fault.says);
    Fault { says, ..fault }
}
