// SPDX-License-Identifier: Apache-2.0
//! What Vultr writes, and what it means.

use bivouac_market::{Arch, Gpu, Listing};
use serde::Deserialize;
use serde_json::Value;

use super::{Kind, TABLES};
use crate::cloud::{Account, Machine, Owner, State};
use crate::read;

/// One page of any list; each kind of list has its own name for what is in it.
#[derive(Debug, Deserialize)]
pub struct Page<T> {
    #[serde(rename = "plans", alias = "plans_metal", alias = "instances", alias = "bare_metals", alias = "os")]
    pub items: Vec<T>,
    #[serde(default)]
    pub meta: Option<Meta>,
}

#[derive(Debug, Default, Deserialize)]
pub struct Meta {
    #[serde(default)]
    pub total: Option<usize>,
    #[serde(default)]
    pub links: Option<Links>,
}

#[derive(Debug, Default, Deserialize)]
pub struct Links {
    #[serde(default)]
    pub next: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Plan {
    pub id: String,
    vcpu_count: u32,
    /// In MB of 1024.
    ram: u32,
    #[serde(default)]
    hourly_cost: Value,
    /// Of all cards together.
    #[serde(default)]
    gpu_vram_gb: Option<u32>,
    #[serde(default)]
    gpu_type: Option<String>,
    #[serde(default)]
    locations: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub struct MetalPlan {
    pub id: String,
    #[serde(default)]
    cpu_threads: Option<u32>,
    #[serde(default)]
    cpu_count: Option<u32>,
    ram: u32,
    #[serde(default)]
    hourly_cost: Value,
    #[serde(default)]
    locations: Option<Vec<String>>,
}

/// An operating system to start with.
#[derive(Debug, Deserialize)]
pub struct System {
    pub id: u64,
    pub name: String,
    #[serde(default)]
    arch: Option<String>,
    #[serde(default)]
    family: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct One {
    #[serde(rename = "instance", alias = "bare_metal")]
    pub machine: Instance,
}

/// A virtual machine, or a real one, which lacks some of this.
#[derive(Debug, Deserialize)]
pub struct Instance {
    pub id: String,
    status: String,
    #[serde(default)]
    power_status: Option<String>,
    #[serde(default)]
    server_status: Option<String>,
    #[serde(default)]
    main_ip: Option<String>,
    #[serde(default)]
    internal_ip: Option<String>,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    date_created: Option<String>,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    tags: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub struct AccountPage {
    account: Holder,
}

#[derive(Debug, Deserialize)]
struct Holder {
    #[serde(default)]
    name: Option<String>,
    /// What is owed: below zero is money in hand.
    #[serde(default)]
    balance: Value,
    #[serde(default)]
    pending_charges: Value,
    #[serde(default)]
    acls: Option<Vec<String>>,
}

/// A key without these rights cannot buy, or cannot give back.
const RIGHTS: [&str; 2] = ["provisioning", "subscriptions"];

// === impl Plan ===

impl Plan {
    pub fn listings(self) -> Vec<Listing> {
        let name = self.gpu_type.unwrap_or_default();
        let total = self.gpu_vram_gb.unwrap_or_default();
        let (gpu, gpus, memory) = if name.is_empty() { (name, 0, None) } else { cards(&name, total) };
        let like = Listing {
            machine: self.id,
            arch: arch_of(&gpu),
            gpu,
            gpus,
            gpu_memory_gib: memory,
            vcpus: self.vcpu_count.saturating_mul(1000),
            memory_mib: self.ram,
            on_demand: read::dollars(&self.hourly_cost),
            ..Listing::default()
        };
        by_region(like, self.locations.unwrap_or_default())
    }
}

// === impl MetalPlan ===

impl MetalPlan {
    /// Only those with GPUs; nothing but the name of the plan says so.
    pub fn listings(self) -> Vec<Listing> {
        let Some((count, name)) = metal_cards(&self.id) else { return Vec::new() };
        let gpu = full_name(name);
        let like = Listing {
            arch: arch_of(&gpu),
            gpus: count.saturating_mul(1000),
            gpu_memory_gib: card_memory(&gpu),
            gpu,
            vcpus: self.cpu_threads.or(self.cpu_count).unwrap_or_default().saturating_mul(1000),
            memory_mib: self.ram,
            on_demand: read::dollars(&self.hourly_cost),
            machine: self.id,
            ..Listing::default()
        };
        by_region(like, self.locations.unwrap_or_default())
    }
}

/// One for each region; a plan that is nowhere is sold out.
fn by_region(like: Listing, regions: Vec<String>) -> Vec<Listing> {
    if regions.is_empty() {
        return vec![Listing { sold_out: true, ..like }];
    }
    regions.into_iter().map(|region| Listing { region, ..like.clone() }).collect()
}

/// Name, thousandths and the memory of one, from the memory of all. A part of a card has the memory of the part.
fn cards(name: &str, total: u32) -> (String, u32, Option<u16>) {
    let gpu = full_name(name);
    let Some(card) = card_memory(&gpu).filter(|card| *card > 0) else {
        // A card that we do not know: there is at least one, and all of the memory may be its own.
        return (gpu, 1000, u16::try_from(total).ok().filter(|memory| *memory > 0));
    };
    let card_gib = u32::from(card);
    if total == 0 || total >= card_gib {
        let count = (total / card_gib).max(1);
        return (gpu, count.saturating_mul(1000), Some(card));
    }
    (gpu, total.saturating_mul(1000) / card_gib, u16::try_from(total).ok())
}

/// All its A100 are those with 80 GB, and the name does not say so.
fn full_name(name: &str) -> String {
    if Gpu::named(name) == Gpu::named("A100") { format!("{name}_80GB") } else { name.to_owned() }
}

/// Of models that come in several sizes it sells the smaller one.
fn card_memory(name: &str) -> Option<u16> {
    let gpu = Gpu::named(name);
    let usual = [("H100", 80), ("GH200", 96), ("B200", 180)];
    gpu.memory_gib().or_else(|| usual.iter().find(|(model, _)| gpu.fits(&Gpu::named(model))).map(|(_, memory)| *memory))
}

/// `vbm-112c-2048gb-8-h100-gpu` has eight, `vbm-72c-480gb-gh200-gpu` has one.
fn metal_cards(plan: &str) -> Option<(u32, &str)> {
    let rest = plan.strip_prefix("vbm-")?.strip_suffix("-gpu")?;
    let (_cpus, rest) = rest.split_once('-')?;
    let (_memory, cards) = rest.split_once('-')?;
    let counted = cards.split_once('-').and_then(|(count, name)| Some((count.parse().ok()?, name)));
    Some(counted.unwrap_or((1, cards)))
}

fn arch_of(gpu: &str) -> Arch {
    if Gpu::named(gpu).fits(&Gpu::named("GH200")) { Arch::Arm64 } else { Arch::Amd64 }
}

// === impl System ===

impl System {
    /// What is started from outside counts as an operating system of the customer.
    pub fn is_custom(&self) -> bool {
        self.name.eq_ignore_ascii_case("custom")
    }

    /// What makes one Ubuntu better than another; `None` is no Ubuntu. Drivers are made for those with long support.
    pub fn ubuntu(&self, arch: &str) -> Option<(bool, bool, u32, u32)> {
        let is_ubuntu = self.family.as_deref().is_some_and(|family| family.eq_ignore_ascii_case("ubuntu"));
        let version = self.name.split_whitespace().find_map(|word| {
            let (year, month) = word.split_once('.')?;
            Some((year.parse().ok()?, month.parse().ok()?))
        });
        let (year, month) = version.filter(|_| is_ubuntu)?;
        Some((self.arch.as_deref() == Some(arch), self.name.contains("LTS"), year, month))
    }
}

// === impl Instance ===

impl Instance {
    fn mark(&self, key: &str) -> Option<&str> {
        self.tags.iter().flatten().find_map(|tag| tag.strip_prefix(key)?.strip_prefix('='))
    }

    pub fn belongs_to(&self, owner: &Owner) -> bool {
        let named = self.label.as_ref().is_some_and(|label| label.starts_with(&owner.prefix()));
        self.mark("tgp-cluster").map_or(named, |cluster| cluster == owner.0)
    }

    /// A machine that is not ready counts as starting even if it is off: it may be on its way up.
    fn state(&self) -> State {
        let more = |what: &str, word: &Option<String>| match word.as_deref() {
            None | Some("") => State::Running,
            Some(word) => TABLES.state(&format!("{what} {word}")),
        };
        match TABLES.state(&self.status) {
            State::Running => {}
            other => return other,
        }
        match (more("server", &self.server_status), more("power", &self.power_status)) {
            (State::Running, State::Running) if read::address(self.main_ip.as_deref()).is_none() => State::Pending,
            (State::Running, power) => power,
            (server, _) => server,
        }
    }

    pub fn machine(self, kind: Kind) -> Machine {
        let more = [&self.power_status, &self.server_status];
        let words = std::iter::once(self.status.as_str());
        let words = words.chain(more.into_iter().flatten().map(String::as_str).filter(|word| !word.is_empty()));
        Machine {
            id: kind.our_id(&self.id),
            claim: self.mark("tgp-claim").map(str::to_owned),
            state: self.state(),
            word: words.collect::<Vec<_>>().join(", "),
            public_ip: read::address(self.main_ip.as_deref()),
            private_ip: read::address(self.internal_ip.as_deref()),
            price: None,
            created: read::moment(self.date_created.as_deref()),
            ended: None,
            name: self.label.unwrap_or_default(),
            region: self.region.unwrap_or_default(),
        }
    }
}

// === impl AccountPage ===

impl AccountPage {
    pub fn account(self) -> Account {
        let Holder { name, balance, pending_charges, acls } = self.account;
        let pending = read::dollars(&pending_charges).filter(|charges| !charges.is_zero());
        let owed = read::dollars(&balance);
        let credit = owed.and_then(|owed| owed.checked_add(pending.unwrap_or_default())?.checked_mul(-1));
        let mut notes: Vec<String> = Vec::new();
        notes.extend(pending.map(|pending| format!("charges of {pending} are not billed yet and count already")));
        let lacks = |right: &&&str| acls.as_ref().is_some_and(|acls| !acls.iter().any(|acl| acl == **right));
        notes.extend(RIGHTS.iter().filter(lacks).map(|right| format!("the key has no right of {right:?}")));
        Account { name: name.filter(|name| !name.is_empty()), balance: credit, machine_limit: None, notes }
    }
}
