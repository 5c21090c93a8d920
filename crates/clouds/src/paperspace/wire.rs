// SPDX-License-Identifier: Apache-2.0
//! The answers of the API.

use bivouac_core::Money;
use serde::Deserialize;
use serde_json::Value;

use super::{TABLES, prices};
use crate::cloud::{self, Owner, State};
use crate::read;

/// One page of any list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    pub has_more: bool,
    #[serde(default)]
    pub next_page: Option<String>,
    pub items: Vec<T>,
}

/// What lists are lists of.
pub trait Identified {
    fn id(&self) -> &str;
}

#[derive(Debug, Deserialize)]
pub struct Available {
    pub available: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    pub id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    operating_system_label: Option<String>,
    #[serde(default)]
    available_machine_types: Option<Vec<Supported>>,
    #[serde(default)]
    dt_created: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Supported {
    machine_type_label: String,
    #[serde(default)]
    is_available: Option<bool>,
}

/// A new machine comes with the event that makes it.
#[derive(Debug, Deserialize)]
pub struct Created {
    pub data: Machine,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
    state: String,
    #[serde(default)]
    pub machine_type: Option<String>,
    #[serde(default)]
    usage_rate: Value,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    private_ip: Option<String>,
    #[serde(default)]
    public_ip: Option<String>,
    #[serde(default)]
    dt_created: Option<String>,
    #[serde(default)]
    dt_deleted: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Event {
    pub id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Session {
    pub team: Team,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Team {
    #[serde(default)]
    pub namespace: Option<String>,
    #[serde(default)]
    pub max_machines: Option<u32>,
}

// === impl Template ===

impl Template {
    /// Whether it is a Linux that reads our script. `None` where it does not say for which machines.
    pub fn is_for(&self, machine: &str) -> Option<bool> {
        let types = self.available_machine_types.as_ref()?;
        Some(types.iter().any(|one| one.machine_type_label == machine && one.is_available != Some(false)))
    }

    pub fn is_ubuntu(&self) -> bool {
        let texts = [&self.name, &self.operating_system_label];
        texts.into_iter().flatten().any(|text| {
            let text = text.to_ascii_lowercase();
            text.contains("ubuntu") || text.contains("ml-in-a-box")
        })
    }

    /// With drivers is better than without, then new is better than old.
    pub fn rank(&self) -> (bool, Option<&str>) {
        let name = self.name.as_deref().unwrap_or_default().to_ascii_lowercase();
        (name.contains("ml-in-a-box"), self.dt_created.as_deref())
    }
}

// === impl Machine ===

impl Machine {
    pub fn belongs_to(&self, owner: &Owner) -> bool {
        self.name.as_ref().is_some_and(|name| name.starts_with(&owner.prefix()))
    }

    pub fn price(&self) -> Option<Money> {
        read::dollars(&self.usage_rate)
    }

    pub fn region(&self) -> String {
        self.region.as_deref().map(prices::region).unwrap_or_default()
    }

    pub fn machine(self) -> cloud::Machine {
        let ended = read::moment(self.dt_deleted.as_deref());
        let state = if self.dt_deleted.is_some() { State::Gone } else { TABLES.state(&self.state) };
        cloud::Machine {
            // There is no room for marks.
            claim: None,
            state,
            price: self.price(),
            region: self.region(),
            public_ip: read::address(self.public_ip.as_deref()),
            private_ip: read::address(self.private_ip.as_deref()),
            created: read::moment(self.dt_created.as_deref()),
            ended,
            id: self.id,
            name: self.name.unwrap_or_default(),
            word: self.state,
        }
    }
}

// === impl Event ===

impl Event {
    /// What the event says about a machine that is not up: state, and the words for it.
    pub fn verdict(&self) -> Option<(State, String)> {
        let (name, state) = (self.name.as_deref()?, self.state.as_deref()?);
        match (name, state) {
            ("create", "error" | "cancelled") => {
                let why = self.error.as_deref().filter(|why| !why.is_empty()).unwrap_or(state);
                Some((State::Failed, format!("create: {why}")))
            }
            ("delete" | "destroy", "new" | "in progress") => Some((State::Terminating, format!("{name}: {state}"))),
            _ => None,
        }
    }
}

impl Identified for Machine {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Identified for Template {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Identified for Event {
    fn id(&self) -> &str {
        &self.id
    }
}
