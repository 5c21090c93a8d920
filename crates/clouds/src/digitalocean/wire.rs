// SPDX-License-Identifier: Apache-2.0
//! What DigitalOcean writes, and what it means.

use bivouac_core::Money;
use bivouac_market::Listing;
use serde::Deserialize;
use serde_json::Value;

use super::TABLES;
use crate::cloud::{Account, Machine, Owner};
use crate::read;

/// One page of any list; each kind of list has its own name for what is in it.
#[derive(Debug, Deserialize)]
pub struct Page<T> {
    #[serde(rename = "droplets", alias = "sizes", alias = "ssh_keys")]
    pub items: Vec<T>,
    #[serde(default)]
    pub links: Option<Links>,
    #[serde(default)]
    pub meta: Option<Meta>,
}

#[derive(Debug, Deserialize)]
pub struct Links {
    #[serde(default)]
    pages: Option<Pages>,
}

#[derive(Debug, Deserialize)]
struct Pages {
    /// A whole address.
    #[serde(default)]
    next: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub struct Meta {
    #[serde(default)]
    pub total: Option<usize>,
}

#[derive(Debug, Deserialize)]
pub struct Size {
    pub slug: String,
    /// In MB of 1024.
    memory: u32,
    vcpus: u32,
    #[serde(default)]
    price_hourly: Value,
    #[serde(default)]
    regions: Option<Vec<String>>,
    #[serde(default)]
    available: Option<bool>,
    #[serde(default)]
    gpu_info: Option<Cards>,
}

#[derive(Debug, Deserialize)]
struct Cards {
    count: u32,
    model: String,
    #[serde(default)]
    vram: Option<Vram>,
}

/// Of all cards together.
#[derive(Debug, Deserialize)]
struct Vram {
    #[serde(default)]
    amount: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub struct Key {
    pub id: u64,
    #[serde(default)]
    pub name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct MadeKey {
    pub ssh_key: Key,
}

#[derive(Debug, Deserialize)]
pub struct One {
    pub droplet: Droplet,
}

#[derive(Debug, Deserialize)]
pub struct Droplet {
    pub id: u64,
    status: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    networks: Option<Networks>,
    #[serde(default)]
    region: Option<Region>,
    #[serde(default)]
    size: Option<Priced>,
    #[serde(default)]
    tags: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Networks {
    #[serde(default)]
    v4: Option<Vec<Address>>,
}

#[derive(Debug, Deserialize)]
struct Address {
    #[serde(default)]
    ip_address: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Region {
    slug: String,
}

#[derive(Debug, Deserialize)]
struct Priced {
    #[serde(default)]
    price_hourly: Value,
}

#[derive(Debug, Deserialize)]
pub struct AccountPage {
    account: Holder,
}

#[derive(Debug, Deserialize)]
struct Holder {
    #[serde(default)]
    droplet_limit: Option<u32>,
    #[serde(default)]
    email: Option<String>,
    #[serde(default)]
    email_verified: Option<bool>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    status_message: Option<String>,
    #[serde(default)]
    team: Option<Team>,
}

#[derive(Debug, Deserialize)]
struct Team {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Balance {
    /// What is owed, with what is not billed yet: below zero is money in hand.
    #[serde(default)]
    month_to_date_balance: Value,
}

// === impl Links ===

impl Links {
    /// The number of the next page. The rest of the address is not believed: the key must not go elsewhere.
    pub fn next(&self) -> Option<Option<String>> {
        let next = self.pages.as_ref()?.next.as_deref().filter(|next| !next.is_empty())?;
        let query = next.split_once('?').map_or("", |(_, query)| query);
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        Some(pairs.find(|(key, _)| key == "page").map(|(_, page)| page.into_owned()))
    }
}

// === impl Size ===

impl Size {
    /// Only those with GPUs that anybody can have: those under contract are in the list for everybody.
    pub fn listings(self) -> Vec<Listing> {
        let Some(cards) = self.gpu_info.filter(|cards| cards.count > 0 && !self.slug.ends_with("-contracted")) else {
            return Vec::new();
        };
        let total = cards.vram.and_then(|vram| vram.amount).filter(|amount| *amount > 0);
        let like = Listing {
            machine: self.slug,
            gpu: cards.model,
            gpus: cards.count.saturating_mul(1000),
            gpu_memory_gib: total.and_then(|total| u16::try_from(total.checked_div(cards.count)?).ok()),
            vcpus: self.vcpus.saturating_mul(1000),
            memory_mib: self.memory,
            on_demand: read::dollars(&self.price_hourly),
            sold_out: self.available == Some(false),
            ..Listing::default()
        };
        let regions = self.regions.unwrap_or_default();
        if regions.is_empty() {
            return vec![Listing { sold_out: true, ..like }];
        }
        regions.into_iter().map(|region| Listing { region, ..like.clone() }).collect()
    }
}

// === impl Droplet ===

impl Droplet {
    fn mark(&self, key: &str) -> Option<&str> {
        self.tags.iter().flatten().find_map(|tag| tag.strip_prefix(key)?.strip_prefix(':'))
    }

    pub fn belongs_to(&self, owner: &Owner) -> bool {
        let named = self.name.as_ref().is_some_and(|name| name.starts_with(&owner.prefix()));
        self.mark("tgp-cluster").map_or(named, |cluster| cluster.eq_ignore_ascii_case(&owner.0))
    }

    fn address(&self, kind: &str) -> Option<std::net::IpAddr> {
        let all = self.networks.iter().flat_map(|networks| networks.v4.iter().flatten());
        let right = all.filter(|address| address.kind.as_deref() == Some(kind));
        right.filter_map(|address| read::address(address.ip_address.as_deref())).next()
    }

    pub fn machine(self) -> Machine {
        Machine {
            id: self.id.to_string(),
            claim: self.mark("tgp-claim").map(str::to_owned),
            state: TABLES.state(&self.status),
            public_ip: self.address("public"),
            private_ip: self.address("private"),
            price: self.size.and_then(|size| read::dollars(&size.price_hourly)),
            created: read::moment(self.created_at.as_deref()),
            ended: None,
            name: self.name.unwrap_or_default(),
            word: self.status,
            region: self.region.map(|region| region.slug).unwrap_or_default(),
        }
    }
}

// === impl AccountPage ===

impl AccountPage {
    pub fn account(self) -> Account {
        let Holder { droplet_limit, email, email_verified, status, status_message, team } = self.account;
        let mut notes = Vec::new();
        if let Some(status) = status.filter(|status| status != "active") {
            let more = status_message.filter(|more| !more.is_empty()).map(|more| format!(": {more}"));
            notes.push(format!("the account is {status:?}{}", more.unwrap_or_default()));
        }
        if email_verified == Some(false) {
            notes.push("the address of the account is not verified".to_owned());
        }
        Account { name: team.and_then(|team| team.name).or(email), balance: None, machine_limit: droplet_limit, notes }
    }
}

// === impl Balance ===

impl Balance {
    pub fn in_hand(&self) -> Option<Money> {
        read::dollars(&self.month_to_date_balance)?.checked_mul(-1)
    }
}

/// A mark as a tag may be written: letters, digits, colons, dashes and underscores.
pub fn tag(key: &str, value: &str) -> String {
    let is_good = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, ':' | '-' | '_');
    let letters = format!("{key}:{value}");
    letters.chars().map(|letter| if is_good(letter) { letter } else { '_' }).take(255).collect()
}
