// SPDX-License-Identifier: Apache-2.0
//! What Compute Engine answers with, as far as we read it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::cloud::{Machine, Owner, State};
use crate::read;
use crate::tables::Tables;

/// One page of a list over all zones.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Aggregated<T> {
    #[serde(default = "BTreeMap::new")]
    pub items: BTreeMap<String, T>,
    #[serde(default)]
    pub next_page_token: Option<String>,
    /// Zones that could not be asked.
    #[serde(default)]
    pub unreachables: Vec<String>,
    /// Every list has it; something that has not is no empty list.
    #[serde(rename = "kind")]
    _kind: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Zone {
    #[serde(default)]
    pub machine_types: Vec<MachineType>,
    #[serde(default)]
    pub accelerator_types: Vec<AcceleratorType>,
    #[serde(default)]
    pub instances: Vec<Instance>,
    #[serde(default)]
    pub warning: Option<Warning>,
}

#[derive(Debug, Deserialize)]
pub struct Warning {
    #[serde(default)]
    pub code: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineType {
    pub name: String,
    pub guest_cpus: u32,
    pub memory_mb: u32,
    #[serde(default)]
    pub accelerators: Vec<Accelerator>,
    #[serde(default)]
    pub architecture: Option<String>,
    #[serde(default)]
    pub deprecated: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accelerator {
    pub guest_accelerator_type: String,
    pub guest_accelerator_count: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcceleratorType {
    pub name: String,
    #[serde(default)]
    pub maximum_cards_per_instance: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    pub name: String,
    pub status: String,
    /// A whole address that ends in the zone.
    #[serde(default)]
    pub zone: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub scheduling: Option<Scheduling>,
    #[serde(default)]
    pub network_interfaces: Vec<Interface>,
    #[serde(default)]
    pub creation_timestamp: Option<String>,
    #[serde(default)]
    pub last_stop_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scheduling {
    #[serde(default)]
    pub provisioning_model: Option<String>,
    #[serde(default)]
    pub preemptible: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    #[serde(default, rename = "networkIP")]
    pub network_ip: Option<String>,
    #[serde(default)]
    pub access_configs: Vec<AccessConfig>,
}

#[derive(Debug, Deserialize)]
pub struct AccessConfig {
    #[serde(default, rename = "natIP")]
    pub nat_ip: Option<String>,
}

/// Work that goes on at Google's side.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    pub name: String,
    pub status: String,
    #[serde(default)]
    pub error: Option<Errors>,
}

#[derive(Debug, Deserialize)]
pub struct Errors {
    #[serde(default)]
    pub errors: Vec<OneError>,
}

#[derive(Debug, Deserialize)]
pub struct OneError {
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skus {
    #[serde(default)]
    pub skus: Vec<super::prices::Sku>,
    #[serde(default)]
    pub next_page_token: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Project {
    pub name: String,
    #[serde(default)]
    pub quotas: Vec<Quota>,
}

#[derive(Debug, Deserialize)]
pub struct Quota {
    pub metric: String,
    #[serde(default)]
    pub limit: f64,
    #[serde(default)]
    pub usage: f64,
}

// === impl Zone ===

impl Zone {
    /// A zone that has nothing says so in a warning; any other warning means that it was not asked.
    pub fn is_whole(&self) -> bool {
        self.warning.as_ref().is_none_or(|warning| warning.code == "NO_RESULTS_ON_PAGE")
    }
}

// === impl Instance ===

impl Instance {
    pub fn belongs_to(&self, owner: &Owner) -> bool {
        self.labels.get("tgp-cluster").map_or_else(|| self.name.starts_with(&owner.prefix()), |one| *one == owner.0)
    }

    fn is_spot(&self) -> bool {
        let scheduling = self.scheduling.as_ref();
        scheduling.is_some_and(|one| one.preemptible || one.provisioning_model.as_deref() == Some("SPOT"))
    }

    pub fn machine(self, tables: &Tables) -> Machine {
        let zone = self.zone.rsplit('/').next().unwrap_or_default().to_owned();
        let state = match (self.status.as_str(), self.is_spot()) {
            // A spot machine that stops was taken back: nobody here stops one.
            ("STOPPING" | "TERMINATED" | "STOPPED", true) => State::Interrupted,
            (word, _) => tables.state(word),
        };
        let interface = self.network_interfaces.first();
        let nat = interface.and_then(|one| one.access_configs.first()).and_then(|config| config.nat_ip.as_deref());
        Machine {
            id: format!("{zone}/{}", self.name),
            claim: self.labels.get("tgp-claim").cloned(),
            state,
            public_ip: read::address(nat),
            private_ip: read::address(interface.and_then(|one| one.network_ip.as_deref())),
            price: None,
            created: read::moment(self.creation_timestamp.as_deref()),
            ended: read::moment(self.last_stop_timestamp.as_deref()),
            region: super::region_of(&zone).to_owned(),
            word: self.status,
            name: self.name,
        }
    }
}
