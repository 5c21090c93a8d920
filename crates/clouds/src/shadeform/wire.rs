// SPDX-License-Identifier: Apache-2.0
//! What Shadeform writes, and what it means.

use bivouac_market::{Arch, Gpu, Listing};
use serde::Deserialize;
use serde_json::Value;

use super::TABLES;
use crate::cloud::{Machine, Owner};
use crate::read;

#[derive(Debug, Deserialize)]
pub struct Types {
    instance_types: Vec<Type>,
}

#[derive(Debug, Deserialize)]
struct Type {
    cloud: String,
    shade_instance_type: String,
    configuration: Configuration,
    /// In cents.
    #[serde(default)]
    hourly_price: Value,
    #[serde(default)]
    deployment_type: Option<String>,
    #[serde(default)]
    availability: Option<Vec<Place>>,
}

#[derive(Debug, Deserialize)]
struct Configuration {
    vcpus: u32,
    memory_in_gb: u32,
    #[serde(default)]
    num_gpus: Option<u32>,
    #[serde(default)]
    gpu_type: Option<String>,
    #[serde(default)]
    vram_per_gpu_in_gb: Option<u16>,
    #[serde(default)]
    os_options: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Place {
    region: String,
    available: bool,
}

#[derive(Debug, Deserialize)]
pub struct Launched {
    pub id: String,
}

#[derive(Debug, Deserialize)]
pub struct Instances {
    pub instances: Vec<Instance>,
}

#[derive(Debug, Deserialize)]
pub struct Instance {
    pub id: String,
    status: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    ip: Option<String>,
    #[serde(default)]
    hourly_price: Value,
    #[serde(default)]
    tags: Option<Vec<String>>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    deleted_at: Option<String>,
}

// === impl Types ===

impl Types {
    pub fn listings(self) -> Vec<Listing> {
        self.instance_types.into_iter().flat_map(Type::listings).collect()
    }

    /// Its filters are not relied on: what does not fit is passed over.
    pub fn newest_system(&self, cloud: &str, kind: &str) -> Option<String> {
        let right = self.instance_types.iter().filter(|one| one.cloud == cloud && one.shade_instance_type == kind);
        let systems = right.flat_map(|one| one.configuration.os_options.iter().flatten());
        systems.filter_map(|name| Some((rank(name)?, name))).max().map(|(_, name)| name.clone())
    }
}

/// `ubuntu22.04_cuda12.2_shade_os`: first whether drivers are in it, then the versions of both. `None` is no Ubuntu.
fn rank(system: &str) -> Option<(bool, Vec<u32>, Vec<u32>)> {
    let version = |word: &str| word.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>();
    let ubuntu = system.split('_').find_map(|word| version(word.strip_prefix("ubuntu")?))?;
    let cuda = system.split('_').find_map(|word| version(word.strip_prefix("cuda")?));
    Some((cuda.is_some(), ubuntu, cuda.unwrap_or_default()))
}

// === impl Type ===

impl Type {
    /// One for each region. A container is no machine.
    fn listings(self) -> Vec<Listing> {
        if self.deployment_type.as_deref() == Some("container") {
            return Vec::new();
        }
        let Configuration { vcpus, memory_in_gb, num_gpus, gpu_type, vram_per_gpu_in_gb, .. } = self.configuration;
        let gpus = num_gpus.unwrap_or_default();
        let gpu = gpu_type.filter(|_| gpus > 0).unwrap_or_default();
        let like = Listing {
            // Both names are needed to buy it.
            machine: format!("{}/{}", self.cloud, self.shade_instance_type),
            arch: if Gpu::named(&gpu).fits(&Gpu::named("GH200")) { Arch::Arm64 } else { Arch::Amd64 },
            gpu,
            gpus: gpus.saturating_mul(1000),
            gpu_memory_gib: vram_per_gpu_in_gb.filter(|memory| *memory > 0 && gpus > 0),
            vcpus: vcpus.saturating_mul(1000),
            memory_mib: memory_in_gb.saturating_mul(1024),
            on_demand: read::cents(&self.hourly_price),
            ..Listing::default()
        };
        let places = self.availability.unwrap_or_default();
        if places.is_empty() {
            return vec![Listing { sold_out: true, ..like }];
        }
        let places = places.into_iter();
        places.map(|place| Listing { region: place.region, sold_out: !place.available, ..like.clone() }).collect()
    }
}

// === impl Instance ===

impl Instance {
    fn mark(&self, key: &str) -> Option<&str> {
        self.tags.iter().flatten().find_map(|tag| tag.strip_prefix(key)?.strip_prefix('='))
    }

    pub fn belongs_to(&self, owner: &Owner) -> bool {
        let named = self.name.as_ref().is_some_and(|name| name.starts_with(&owner.prefix()));
        self.mark("tgp-cluster").map_or(named, |cluster| cluster == owner.0)
    }

    pub fn machine(self) -> Machine {
        Machine {
            claim: self.mark("tgp-claim").map(str::to_owned),
            state: TABLES.state(&self.status),
            id: self.id,
            name: self.name.unwrap_or_default(),
            word: self.status,
            public_ip: read::address(self.ip.as_deref()),
            private_ip: None,
            price: read::cents(&self.hourly_price),
            created: read::moment(self.created_at.as_deref()),
            ended: read::moment(self.deleted_at.as_deref()),
            region: self.region.unwrap_or_default(),
        }
    }
}
