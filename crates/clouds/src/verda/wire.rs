// SPDX-License-Identifier: Apache-2.0
//! The answers of the API.

use std::collections::{BTreeMap, BTreeSet};

use bivouac_core::Money;
use bivouac_market::{Arch, Listing};
use serde::Deserialize;
use serde_json::Value;

use super::TABLES;
use crate::cloud::{Machine, Owner, State};
use crate::read;

#[derive(Debug, Deserialize)]
pub struct Type {
    instance_type: String,
    price_per_hour: Value,
    #[serde(default)]
    spot_price_per_hour: Value,
    /// The same under its older name.
    #[serde(default)]
    spot_price: Value,
    #[serde(default)]
    model: Option<String>,
    gpu: Gpus,
    #[serde(default)]
    gpu_memory: Option<Size>,
    cpu: Cores,
    memory: Size,
    #[serde(default)]
    currency: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Gpus {
    #[serde(default)]
    description: Option<String>,
    number_of_gpus: u32,
}

#[derive(Debug, Deserialize)]
struct Cores {
    number_of_cores: u32,
}

#[derive(Debug, Deserialize)]
struct Size {
    size_in_gigabytes: Value,
}

#[derive(Debug, Deserialize)]
pub struct Location {
    pub code: String,
}

#[derive(Debug, Deserialize)]
pub struct Available {
    location_code: String,
    availabilities: Vec<String>,
}

/// Which types are there, by location.
#[derive(Debug, Default)]
pub struct Stock(BTreeMap<String, BTreeSet<String>>);

#[derive(Debug, Deserialize)]
pub struct Instance {
    pub id: String,
    #[serde(default)]
    pub hostname: Option<String>,
    #[serde(default)]
    description: Option<String>,
    status: String,
    #[serde(default)]
    ip: Option<String>,
    #[serde(default)]
    price_per_hour: Value,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    location: Option<String>,
    #[serde(default)]
    is_spot: Option<bool>,
    #[serde(default)]
    os_volume_id: Option<String>,
    #[serde(default)]
    volume_ids: Option<Vec<String>>,
    #[serde(default)]
    pub startup_script_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Script {
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Key {
    pub id: String,
}

#[derive(Debug, Deserialize)]
pub struct Balance {
    #[serde(default)]
    pub amount: Value,
    #[serde(default)]
    pub currency: Option<String>,
}

// === impl Type ===

impl Type {
    /// One for each location, at the prices that something is there for.
    pub fn listings(&self, places: &BTreeSet<String>, on_demand: &Stock, spot: &Stock) -> Vec<Listing> {
        let gpus = self.gpu.number_of_gpus;
        let gib = |size: &Size| read::thousandths(&size.size_in_gigabytes).map(|thousandths| thousandths / 1000);
        let each = self.gpu_memory.as_ref().and_then(gib).and_then(|all| all.checked_div(gpus));
        let gpu = if gpus == 0 { String::new() } else { self.name() };
        let like = Listing {
            machine: self.instance_type.clone(),
            arch: if gpu.starts_with("GH") || gpu.starts_with("GB") { Arch::Arm64 } else { Arch::Amd64 },
            gpu,
            gpus: gpus.saturating_mul(1000),
            gpu_memory_gib: each.and_then(|gib| u16::try_from(gib).ok()),
            vcpus: self.cpu.number_of_cores.saturating_mul(1000),
            memory_mib: gib(&self.memory).unwrap_or_default().saturating_mul(1024),
            currency: self.currency.as_deref().unwrap_or_default().to_ascii_uppercase(),
            on_demand: read::dollars(&self.price_per_hour),
            spot: self.spot_price(),
            ..Listing::default()
        };
        let one = |place: &String| {
            let firm = like.on_demand.filter(|_| on_demand.has(place, &self.instance_type));
            let loose = like.spot.filter(|_| spot.has(place, &self.instance_type));
            match (firm, loose) {
                (None, None) => Listing { region: place.clone(), sold_out: true, ..like.clone() },
                (on_demand, spot) => Listing { region: place.clone(), on_demand, spot, ..like.clone() },
            }
        };
        places.iter().map(one).collect()
    }

    fn spot_price(&self) -> Option<Money> {
        let told = read::dollars(&self.spot_price_per_hour).or_else(|| read::dollars(&self.spot_price));
        told.filter(|price| *price > Money::ZERO)
    }

    /// The model, or what stands behind the count in `8x NVidia Tesla V100`.
    fn name(&self) -> String {
        let described = || {
            let text = self.gpu.description.as_deref()?;
            Some(text.split_once("x ").map_or(text, |(_, name)| name))
        };
        self.model.as_deref().filter(|model| !model.is_empty()).or_else(described).unwrap_or_default().to_owned()
    }
}

// === impl Stock ===

impl Stock {
    pub fn of(answer: Vec<Available>) -> Self {
        let mut stock = Self::default();
        for one in answer {
            stock.0.entry(one.location_code).or_default().extend(one.availabilities);
        }
        stock
    }

    pub fn places(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    fn has(&self, place: &str, machine: &str) -> bool {
        self.0.get(place).is_some_and(|machines| machines.contains(machine))
    }
}

// === impl Instance ===

impl Instance {
    pub fn belongs_to(&self, owner: &Owner) -> bool {
        self.hostname.as_ref().is_some_and(|name| name.starts_with(&owner.prefix()))
    }

    /// One of the marks in its description.
    fn mark(&self, key: &str) -> Option<&str> {
        let mut words = self.description.as_deref()?.split_whitespace();
        words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    /// Volumes stay, and are paid for, unless they are named.
    pub fn volumes(&self) -> BTreeSet<&str> {
        let others = self.volume_ids.iter().flatten();
        self.os_volume_id.iter().chain(others).map(String::as_str).filter(|id| !id.is_empty()).collect()
    }

    pub fn is_over(&self) -> bool {
        TABLES.state(&self.status) == State::Gone
    }

    /// `ended` by us: then nobody took it.
    pub fn machine(self, ended: bool) -> Machine {
        let is_spot = self.is_spot == Some(true) && !ended;
        let state = match (TABLES.state(&self.status), self.status.as_str()) {
            (_, "offline" | "discontinued") if is_spot => State::Interrupted,
            (state, _) => state,
        };
        Machine {
            claim: self.mark("tgp-claim").map(str::to_owned),
            state,
            public_ip: read::address(self.ip.as_deref()),
            private_ip: None,
            price: read::dollars(&self.price_per_hour),
            created: read::moment(self.created_at.as_deref()),
            ended: None,
            id: self.id,
            name: self.hostname.unwrap_or_default(),
            word: self.status,
            region: self.location.unwrap_or_default(),
        }
    }
}
