// SPDX-License-Identifier: Apache-2.0
//! What Vast writes, and what it means.

use std::collections::BTreeMap;

use bivouac_core::Money;
use bivouac_market::{Arch, Listing};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::order::CLAIM;
use super::{DISK_GIB, TABLES};
use crate::cloud::{Machine, Owner, State};
use crate::read;
use crate::wire::Reply;

/// A month of storage has so many hours.
const HOURS: i64 = 720;
/// What a machine on a bid is called when somebody paid more.
const OUTBID: [&str; 2] = ["stopped", "exited"];

#[derive(Debug, Deserialize)]
pub struct Offers {
    offers: Vec<Offer>,
}

/// One concrete machine, or some of its GPUs.
#[derive(Debug, Deserialize)]
struct Offer {
    id: u64,
    gpu_name: String,
    num_gpus: u32,
    /// Of one GPU, in MiB.
    #[serde(default)]
    gpu_ram: Value,
    #[serde(default)]
    cpu_cores: Value,
    #[serde(default)]
    cpu_cores_effective: Value,
    /// Of the whole machine, in MiB.
    #[serde(default)]
    cpu_ram: Value,
    #[serde(default)]
    cpu_arch: Option<String>,
    #[serde(default)]
    dph_base: Value,
    #[serde(default)]
    min_bid: Value,
    /// For a GB and a month.
    #[serde(default)]
    storage_cost: Value,
    #[serde(default)]
    geolocation: Option<String>,
    #[serde(default)]
    rentable: Value,
    #[serde(default)]
    rented: Value,
    #[serde(default)]
    verified: Value,
    #[serde(default)]
    verification: Option<String>,
}

/// What became of an order.
#[derive(Debug, Default)]
pub struct Verdict {
    pub success: Option<bool>,
    pub error: String,
    pub says: String,
    /// The machine, which may be there even if the order was refused.
    pub contract: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Instances {
    pub instances: Vec<Instance>,
    /// Only the next version of the API has pages.
    #[serde(default)]
    pub next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct One {
    /// Null is no machine; an answer without the word is no answer.
    #[serde(deserialize_with = "written")]
    pub instances: Option<Instance>,
}

#[derive(Debug, Deserialize)]
pub struct Instance {
    id: u64,
    #[serde(default)]
    actual_status: Option<String>,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    is_bid: Option<bool>,
    #[serde(default)]
    public_ipaddr: Option<String>,
    #[serde(default)]
    dph_total: Value,
    #[serde(default)]
    geolocation: Option<String>,
    /// In seconds since 1970, with a fraction.
    #[serde(default)]
    start_date: Value,
    /// Pairs of names and values.
    #[serde(default)]
    extra_env: Value,
}

#[derive(Debug, Deserialize)]
pub struct User {
    #[serde(rename = "id")]
    _id: u64,
    #[serde(default)]
    pub email: Option<String>,
    #[serde(default)]
    pub credit: Value,
}

fn written<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

/// One listing for each offer, whichever way it can be bought.
pub fn listings(on_demand: Offers, bids: Offers) -> Vec<Listing> {
    let mut all: BTreeMap<u64, Listing> = BTreeMap::new();
    for offer in on_demand.offers.into_iter().filter(Offer::is_for_us) {
        if let Some(price) = offer.price() {
            all.insert(offer.id, Listing { on_demand: Some(price), ..offer.listing() });
        }
    }
    for offer in bids.offers.into_iter().filter(Offer::is_for_us) {
        if let Some(bid) = positive(&offer.min_bid) {
            all.entry(offer.id).or_insert_with(|| offer.listing()).spot = Some(bid);
        }
    }
    all.into_values().collect()
}

// === impl Offer ===

impl Offer {
    /// It was asked for nothing else, and that is not relied on: what runs there will know secrets.
    fn is_for_us(&self) -> bool {
        let verified = self.verified != Value::Bool(false)
            && self.verification.as_ref().is_none_or(|word| word.eq_ignore_ascii_case("verified"));
        verified && self.rentable != Value::Bool(false) && self.rented != Value::Bool(true)
    }

    /// With a disk of the usual size, which is paid for by the month.
    fn price(&self) -> Option<Money> {
        let base = positive(&self.dph_base)?;
        let month = read::dollars(&self.storage_cost).unwrap_or_default().checked_mul(DISK_GIB.into())?;
        let hour = month.micros().checked_add(HOURS - 1)?.div_euclid(HOURS);
        base.checked_add(Money::from_micros(hour))
    }

    fn listing(&self) -> Listing {
        Listing {
            region: country(self.geolocation.as_deref()),
            machine: self.id.to_string(),
            gpu: self.gpu_name.clone(),
            gpus: self.num_gpus.saturating_mul(1000),
            gpu_memory_gib: self.gpu_memory_gib(),
            vcpus: read::thousandths(&self.cpu_cores_effective).unwrap_or_default(),
            memory_mib: self.memory_mib().unwrap_or_default(),
            arch: if self.cpu_arch.as_deref() == Some("arm64") { Arch::Arm64 } else { Arch::Amd64 },
            ..Listing::default()
        }
    }

    /// To the nearest: a card that is sold with 24 GiB says 24564 MiB.
    fn gpu_memory_gib(&self) -> Option<u16> {
        let mib = read::thousandths(&self.gpu_ram)? / 1000;
        u16::try_from(mib.saturating_add(512) / 1024).ok().filter(|memory| *memory > 0)
    }

    /// As large a share of the memory as of the cores.
    fn memory_mib(&self) -> Option<u32> {
        let exact = |value: &Value| positive(value).map(|number| i128::from(number.micros()));
        let whole = exact(&self.cpu_ram)?;
        let share = match (exact(&self.cpu_cores_effective), exact(&self.cpu_cores)) {
            (Some(ours), Some(all)) if ours < all => whole.checked_mul(ours)?.checked_div(all)?,
            _ => whole,
        };
        u32::try_from(share / 1_000_000).ok()
    }
}

fn positive(value: &Value) -> Option<Money> {
    read::dollars(value).filter(|money| *money > Money::ZERO)
}

/// `Paris, FR` is in `FR`.
fn country(place: Option<&str>) -> String {
    let place = place.unwrap_or_default();
    place.rsplit_once(',').map_or(place, |(_, country)| country).trim().to_owned()
}

// === impl Verdict ===

impl Verdict {
    /// Errors have the same keys everywhere, and any of them may be missing.
    pub fn of(reply: &Reply) -> Self {
        let body = reply.json().unwrap_or_default();
        let text = |key: &str| body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        Self {
            success: body.get("success").and_then(Value::as_bool),
            error: text("error").unwrap_or_default().to_owned(),
            says: ["msg", "message", "error"].into_iter().find_map(text).unwrap_or_default().to_owned(),
            contract: body.get("new_contract").and_then(contract),
        }
    }

    /// Also with a status of success.
    pub fn is_no(&self) -> bool {
        self.success == Some(false) || !self.error.is_empty()
    }
}

fn contract(value: &Value) -> Option<String> {
    let text = value.as_str().map_or_else(|| value.as_u64().map(|id| id.to_string()), |text| Some(text.to_owned()))?;
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

// === impl Instance ===

impl Instance {
    pub fn belongs_to(&self, owner: &Owner) -> bool {
        self.label.as_ref().is_some_and(|label| label.starts_with(&owner.prefix()))
    }

    fn variable(&self, name: &str) -> Option<&str> {
        let pairs = self.extra_env.as_array().into_iter().flatten().filter_map(Value::as_array);
        pairs
            .filter_map(|pair| Some((pair.first()?.as_str()?, pair.get(1)?.as_str()?)))
            .find_map(|(key, value)| (key == name).then_some(value))
    }

    pub fn machine(self) -> Machine {
        let word = self.actual_status.clone().unwrap_or_else(|| "null".to_owned());
        let state = match TABLES.state(&word) {
            _ if self.is_bid == Some(true) && OUTBID.contains(&word.as_str()) => State::Interrupted,
            state => state,
        };
        // Seconds with a fraction are read like dollars with one: in millionths.
        let created = positive(&self.start_date).and_then(|date| Timestamp::from_microsecond(date.micros()).ok());
        Machine {
            claim: self.variable(CLAIM).map(str::to_owned),
            state,
            word,
            public_ip: read::address(self.public_ipaddr.as_deref().map(str::trim)),
            private_ip: None,
            price: read::dollars(&self.dph_total),
            created,
            ended: None,
            region: country(self.geolocation.as_deref()),
            id: self.id.to_string(),
            name: self.label.unwrap_or_default(),
        }
    }
}
