// SPDX-License-Identifier: Apache-2.0
//! The answers of REST v2.

use std::collections::BTreeMap;

use bivouac_market::Listing;
use serde::Deserialize;
use serde_json::Value;

use super::TABLES;
use super::graph::Extras;
use super::order::{Kind, Tier};
use crate::cloud::{Machine, Owner};
use crate::read;

#[derive(Debug, Deserialize)]
pub struct Gpus {
    pub gpus: Vec<Gpu>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    id: String,
    #[serde(default)]
    memory: Value,
    price: Prices,
    #[serde(default)]
    max_count: Counts,
    #[serde(default)]
    availability: Option<String>,
    #[serde(default)]
    data_centers: Option<Vec<DataCenter>>,
}

#[derive(Debug, Deserialize)]
struct Prices {
    #[serde(default)]
    secure: Value,
    #[serde(default)]
    community: Value,
}

#[derive(Debug, Default, Deserialize)]
struct Counts {
    #[serde(default)]
    secure: Option<u32>,
    #[serde(default)]
    community: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct DataCenter {
    id: String,
    #[serde(default)]
    availability: Option<String>,
}

/// The specification of August has no pages; newer clients follow a cursor under one of these names.
#[derive(Debug, Deserialize)]
pub struct Pods {
    pub pods: Vec<Pod>,
    #[serde(default, alias = "nextCursor", alias = "nextPageToken", alias = "next")]
    next_cursor: Option<String>,
    #[serde(default)]
    pagination: Option<Pagination>,
}

#[derive(Debug, Deserialize)]
struct Pagination {
    #[serde(default, alias = "nextCursor", alias = "next")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    pub id: String,
    #[serde(default)]
    name: Option<String>,
    status: String,
    #[serde(default)]
    cost: Value,
    #[serde(default)]
    data_center_id: Option<String>,
    #[serde(default)]
    env: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    runtime: Option<Runtime>,
    #[serde(default)]
    global_networking: Option<GlobalNetworking>,
    #[serde(default)]
    created_at: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Runtime {
    #[serde(default)]
    ports: Option<Vec<Port>>,
}

#[derive(Debug, Deserialize)]
struct Port {
    #[serde(default)]
    ip: Option<String>,
}

#[derive(Debug, Deserialize)]
struct GlobalNetworking {
    #[serde(default)]
    ip: Option<String>,
}

// === impl Gpu ===

impl Gpu {
    pub fn most(&self, tier: Tier) -> u32 {
        let told = match tier {
            Tier::Secure => self.max_count.secure,
            Tier::Community => self.max_count.community,
        };
        told.unwrap_or(1)
    }

    /// Pods with `count` of it, one for each data center that was named; none was: one for anywhere.
    pub fn listings(self, tier: Tier, count: u32, extras: &Extras) -> Vec<Listing> {
        let price = match tier {
            Tier::Secure => &self.price.secure,
            Tier::Community => &self.price.community,
        };
        let price = read::dollars(price).filter(|price| !price.is_zero());
        if price.is_none() || self.most(tier) < count {
            return Vec::new();
        }
        let key = (self.id.clone(), tier);
        let size = extras.sizes.get(&key).copied().unwrap_or_default();
        let spot = extras.spot.get(&key).and_then(|price| price.checked_mul(count.into()));
        let like = Listing {
            machine: Kind { tier, count, gpu: &self.id }.to_string(),
            gpus: count.saturating_mul(1000),
            gpu_memory_gib: read::thousandths(&self.memory).and_then(|memory| u16::try_from(memory / 1000).ok()),
            vcpus: size.vcpus.saturating_mul(count),
            memory_mib: size.memory_mib.saturating_mul(count),
            on_demand: price.and_then(|price| price.checked_mul(count.into())),
            spot,
            gpu: self.id,
            ..Listing::default()
        };
        match self.data_centers.filter(|centers| !centers.is_empty()) {
            None => vec![Listing { sold_out: is_none(self.availability.as_deref()), ..like }],
            Some(centers) => centers
                .into_iter()
                .map(|center| {
                    let sold_out = is_none(center.availability.as_deref());
                    Listing { region: center.id, sold_out, ..like.clone() }
                })
                .collect(),
        }
    }
}

/// What nobody says to be there is not there.
fn is_none(availability: Option<&str>) -> bool {
    availability.is_none_or(|word| word.eq_ignore_ascii_case("NONE"))
}

// === impl Pods ===

impl Pods {
    pub fn cursor(&self) -> Option<String> {
        let other = self.pagination.as_ref().and_then(|pagination| pagination.next_cursor.clone());
        self.next_cursor.clone().or(other)
    }
}

// === impl Pod ===

impl Pod {
    fn mark(&self, name: &str) -> Option<&str> {
        self.env.as_ref()?.get(name)?.as_str()
    }

    pub fn belongs_to(&self, owner: &Owner) -> bool {
        let named = self.name.as_ref().is_some_and(|name| name.starts_with(&owner.prefix()));
        self.mark("TGP_CLUSTER").map_or(named, |cluster| cluster == owner.0)
    }

    pub fn machine(self) -> Machine {
        let ports = self.runtime.iter().flat_map(|runtime| runtime.ports.iter().flatten());
        // Ports that only the proxy reaches have an address within the data center.
        let is_public =
            |ip: &std::net::IpAddr| !matches!(ip, std::net::IpAddr::V4(v4) if v4.is_private() || is_shared(*v4));
        let public_ip = ports.filter_map(|port| read::address(port.ip.as_deref())).find(is_public);
        Machine {
            claim: self.mark("TGP_CLAIM").map(str::to_owned),
            state: TABLES.state(&self.status),
            public_ip,
            private_ip: self.global_networking.as_ref().and_then(|network| read::address(network.ip.as_deref())),
            price: read::dollars(&self.cost),
            created: read::moment(self.created_at.as_deref()),
            ended: None,
            id: self.id,
            name: self.name.unwrap_or_default(),
            word: self.status,
            region: self.data_center_id.unwrap_or_default(),
        }
    }
}

/// `100.64.0.0/10`, which carriers and tunnels use.
fn is_shared(address: std::net::Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 100 && second & 0xc0 == 64
}
