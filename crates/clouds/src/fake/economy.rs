// SPDX-License-Identifier: Apache-2.0
//! What stands behind a fake cloud: goods in stock, machines that were rented, money, and the slowness of it all.

use std::collections::BTreeMap;
use std::time::Duration;

use bivouac_core::Money;
use bivouac_core::ids::{IdStream, Ids};
use bivouac_market::{Gpu, Row};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

/// A machine type in a region.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Good {
    pub machine: String,
    pub region: String,
    #[serde(default)]
    pub zone: String,
    /// As the cloud names it.
    #[serde(default)]
    pub gpu: String,
    #[serde(default)]
    pub gpus: u32,
    /// Of one GPU.
    #[serde(default)]
    pub vram_gib: u32,
    pub vcpus: u32,
    pub memory_gib: u32,
    #[serde(default)]
    pub disk_gib: u32,
    pub price: Money,
    #[serde(default)]
    pub spot: Option<Money>,
    pub stock: u32,
}

/// A machine that somebody rented.
#[derive(Clone, Debug)]
pub struct Rented {
    pub id: String,
    pub name: String,
    pub good: Good,
    pub spot: bool,
    /// Tags, labels, or whatever the cloud keeps for its customer.
    pub marks: BTreeMap<String, String>,
    /// What it was ordered with.
    pub body: Value,
    pub price: Money,
    pub at: Instant,
    pub ended: Option<Instant>,
    pub fate: Fate,
    /// The last part of its address.
    pub number: u8,
}

/// What happens to a machine besides starting and being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Ordinary,
    Interrupted,
    Stopped,
    Failed,
    /// The cloud uses a word that nobody has heard before.
    Strange,
}

/// Where a machine is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    Booting,
    Running,
    Stopped,
    Interrupted,
    Failed,
    Ending,
    Ended,
    Strange,
}

/// Why the cloud sells nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    NoCapacity,
    Quota,
    Payment,
    Unauthorized,
    Forbidden,
    NotFound,
    Conflict,
    Invalid,
    RateLimited,
    Broken,
    Retired,
}

#[derive(Debug)]
pub struct Economy {
    pub goods: Vec<Good>,
    pub rented: Vec<Rented>,
    pub balance: Money,
    /// How many machines the account may have.
    pub quota: usize,
    pub boot: Duration,
    /// A new machine is not in listings for so long.
    pub list_lag: Duration,
    /// A machine that was ended stays visible for so long.
    pub end_lag: Duration,
    /// The most that one page of a listing has.
    pub page: usize,
    /// The last page names the first one as the next.
    pub pages_go_round: bool,
    /// What time it was when it began.
    pub beginning: Timestamp,
    ids: IdStream,
    began: Instant,
}

/// What fakes call the moment at which they begin, if nobody says.
const BEGINNING: i64 = 1_794_722_400;

/// Of every machine that a price list names.
const STOCK: u32 = 4;

// === impl Good ===

impl Good {
    /// A row of a price list, in stock. A machine that can only be had until somebody else wants it is left out.
    pub fn of(row: &Row<'_>) -> Option<Self> {
        let whole = |thousandths: u32| thousandths / 1000;
        Some(Self {
            machine: row.machine.to_owned(),
            region: row.region.to_owned(),
            zone: row.zone.to_owned(),
            gpu: row.gpu.to_owned(),
            gpus: whole(row.gpus),
            vram_gib: row.gpu_memory_gib.or(Gpu::named(row.gpu).memory_gib()).unwrap_or_default().into(),
            vcpus: whole(row.vcpus),
            memory_gib: row.memory_mib / 1024,
            disk_gib: 100,
            price: row.on_demand?,
            spot: row.spot,
            stock: STOCK,
        })
    }
}

// === impl Economy ===

impl Economy {
    pub fn new(goods: Vec<Good>) -> Self {
        Self {
            goods,
            rented: Vec::new(),
            balance: Money::from_micros(100_000_000),
            quota: 100,
            boot: Duration::from_secs(90),
            list_lag: Duration::ZERO,
            end_lag: Duration::ZERO,
            page: 100,
            pages_go_round: false,
            beginning: Timestamp::from_second(BEGINNING).unwrap_or(Timestamp::UNIX_EPOCH),
            ids: Ids::new(1).purpose("machines"),
            began: Instant::now(),
        }
    }

    pub fn id(&mut self) -> String {
        self.ids.next_label(16)
    }

    pub fn good(&self, machine: &str, region: &str) -> Option<&Good> {
        self.goods.iter().find(|good| good.machine == machine && good.region == region)
    }

    /// One machine leaves the stock.
    pub fn rent(
        &mut self,
        machine: &str,
        region: &str,
        spot: bool,
        name: &str,
        body: Value,
    ) -> Result<Rented, Refused> {
        if self.balance <= Money::ZERO {
            return Err(Refused::Payment);
        }
        if self.rented.iter().filter(|one| one.ended.is_none()).count() >= self.quota {
            return Err(Refused::Quota);
        }
        let id = self.id();
        let good = self.goods.iter_mut().find(|good| good.machine == machine && good.region == region);
        let good = good.ok_or(Refused::Invalid)?;
        good.stock = good.stock.checked_sub(1).ok_or(Refused::NoCapacity)?;
        let price = if spot { good.spot.ok_or(Refused::Invalid)? } else { good.price };
        let rented = Rented {
            id,
            name: name.to_owned(),
            good: good.clone(),
            spot,
            marks: BTreeMap::new(),
            body,
            price,
            at: Instant::now(),
            ended: None,
            fate: Fate::Ordinary,
            number: u8::try_from(self.rented.len() % 250).unwrap_or_default() + 1,
        };
        self.rented.push(rented.clone());
        Ok(rented)
    }

    /// Whether there is such a machine still.
    pub fn end(&mut self, id: &str) -> bool {
        let lag = self.end_lag;
        let Some(machine) = self.rented.iter_mut().find(|one| one.id == id && !one.is_over(lag)) else { return false };
        machine.ended.get_or_insert_with(Instant::now);
        true
    }

    pub fn mark(&mut self, id: &str, marks: impl IntoIterator<Item = (String, String)>) {
        if let Some(machine) = self.rented.iter_mut().find(|one| one.id == id) {
            machine.marks.extend(marks);
        }
    }

    /// A machine as somebody sees it who knows its id.
    pub fn find(&self, id: &str) -> Option<&Rented> {
        self.rented.iter().find(|one| one.id == id && !one.is_over(self.end_lag))
    }

    /// What a listing shows.
    pub fn listed(&self) -> Vec<&Rented> {
        let visible = |one: &&Rented| !one.is_over(self.end_lag) && one.at.elapsed() >= self.list_lag;
        self.rented.iter().filter(visible).collect()
    }

    pub fn phase(&self, machine: &Rented) -> Phase {
        match (machine.ended, machine.fate) {
            (Some(_), _) if machine.is_over(self.end_lag) => Phase::Ended,
            (Some(_), _) => Phase::Ending,
            (None, Fate::Interrupted) => Phase::Interrupted,
            (None, Fate::Stopped) => Phase::Stopped,
            (None, Fate::Failed) => Phase::Failed,
            (None, Fate::Strange) => Phase::Strange,
            (None, Fate::Ordinary) if machine.at.elapsed() < self.boot => Phase::Booting,
            (None, Fate::Ordinary) => Phase::Running,
        }
    }

    /// The moment of the fake world, for what it writes.
    pub fn moment(&self, at: Instant) -> Timestamp {
        let since = at.saturating_duration_since(self.began);
        self.beginning.checked_add(since).unwrap_or(self.beginning)
    }
}

// === impl Rented ===

impl Rented {
    fn is_over(&self, lag: Duration) -> bool {
        self.ended.is_some_and(|ended| ended.elapsed() >= lag)
    }

    /// Something of what it was ordered with, by JSON pointer.
    pub fn said(&self, pointer: &str) -> Value {
        self.body.pointer(pointer).cloned().unwrap_or_default()
    }

    pub fn address(&self) -> String {
        format!("198.51.100.{}", self.number)
    }
}
