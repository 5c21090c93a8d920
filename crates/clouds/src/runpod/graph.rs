// SPDX-License-Identifier: Apache-2.0
//! RunPod's older API. It alone sells spot pods, ends pods by itself and tells the balance, and it will be retired:
//! from the first 410 on it is not asked any more.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bivouac_core::Money;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::TABLES;
use super::order::Tier;
use crate::fault::{Fault, Operation, Outcome};
use crate::read;
use crate::wire::{Reply, Wire};

#[derive(Debug)]
pub struct Graph {
    wire: Wire,
    retired: AtomicBool,
    /// How large a pod with one GPU is at least. Sizes change slowly, so the last ones that were told are kept.
    sizes: Mutex<Sizes>,
}

type Sizes = BTreeMap<(String, Tier), Size>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// In thousandths.
    pub vcpus: u32,
    pub memory_mib: u32,
}

/// What only this API knows of the GPUs.
#[derive(Debug, Default)]
pub struct Extras {
    pub sizes: Sizes,
    /// Of one GPU.
    pub spot: BTreeMap<(String, Tier), Money>,
}

#[derive(Debug, Deserialize)]
struct Envelope {
    #[serde(default)]
    data: Option<Value>,
    #[serde(default)]
    errors: Option<Vec<Complaint>>,
}

#[derive(Debug, Deserialize)]
struct Complaint {
    #[serde(default)]
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Types {
    gpu_types: Vec<Type>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Type {
    id: String,
    #[serde(default)]
    secure_spot_price: Value,
    #[serde(default)]
    community_spot_price: Value,
    #[serde(default)]
    secure: Option<Least>,
    #[serde(default)]
    community: Option<Least>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Least {
    #[serde(default)]
    min_vcpu: Value,
    #[serde(default)]
    min_memory: Value,
}

/// A pod that was bought, by either mutation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bought {
    pub id: String,
    #[serde(default)]
    pub cost_per_hr: Value,
    #[serde(default)]
    pub desired_status: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Who {
    myself: Myself,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Myself {
    #[serde(default)]
    pub email: Option<String>,
    #[serde(default)]
    pub client_balance: Value,
}

const TYPES: &str = "query{gpuTypes{id secureSpotPrice communitySpotPrice \
    secure:lowestPrice(input:{gpuCount:1,secureCloud:true}){minVcpu minMemory} \
    community:lowestPrice(input:{gpuCount:1,secureCloud:false}){minVcpu minMemory}}}";
const MYSELF: &str = "query{myself{id email clientBalance}}";
const ON_DEMAND: &str =
    "mutation($i:PodFindAndDeployOnDemandInput!){podFindAndDeployOnDemand(input:$i){id costPerHr desiredStatus}}";
const SPOT: &str =
    "mutation($i:PodRentInterruptableInput!){podRentInterruptable(input:$i){id costPerHr desiredStatus}}";

// === impl Graph ===

impl Graph {
    pub fn new(wire: Wire) -> Self {
        Self { wire, retired: AtomicBool::new(false), sizes: Mutex::default() }
    }

    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Never a fault: what is for sale on demand is told elsewhere, and can be bought without this.
    pub async fn extras(&self) -> Extras {
        let told =
            if self.is_retired() { None } else { self.ask::<Types>(Operation::Offers, TYPES, json!({})).await.ok() };
        let mut known = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut extras = Extras::default();
        for one in told.map(|types| types.gpu_types).unwrap_or_default() {
            let halves = [
                (Tier::Secure, one.secure_spot_price, one.secure),
                (Tier::Community, one.community_spot_price, one.community),
            ];
            for (tier, spot, least) in halves {
                let key = (one.id.clone(), tier);
                if let Some(price) = read::dollars(&spot).filter(|price| *price > Money::ZERO) {
                    extras.spot.insert(key.clone(), price);
                }
                if let Some(size) = least.and_then(|least| least.size()) {
                    known.insert(key, size);
                }
            }
        }
        extras.sizes = known.clone();
        extras
    }

    /// Sends the order, once.
    pub async fn buy(&self, spot: bool, input: &Value) -> Result<Bought, Fault> {
        let (query, name) = if spot { (SPOT, "podRentInterruptable") } else { (ON_DEMAND, "podFindAndDeployOnDemand") };
        let mut data: BTreeMap<String, Bought> = self.ask(Operation::Launch, query, json!({ "i": input })).await?;
        let nothing = || self.wire.fault(Operation::Launch, Outcome::Ambiguous, "it accepted, and named no pod");
        data.remove(name).ok_or_else(nothing)
    }

    pub async fn myself(&self) -> Result<Myself, Fault> {
        Ok(self.ask::<Who>(Operation::Verify, MYSELF, json!({})).await?.myself)
    }

    async fn ask<T: DeserializeOwned>(&self, operation: Operation, query: &str, with: Value) -> Result<T, Fault> {
        let call = self.wire.post(operation, "/graphql").json(&json!({ "query": query, "variables": with }));
        let reply = call.reply().await?;
        if reply.status == http::StatusCode::GONE {
            self.retired.store(true, Ordering::Relaxed);
        }
        if !reply.status.is_success() {
            return Err(self.wire.refusal(operation, &reply));
        }
        let nonsense = |error| self.wire.nonsense(operation, &reply, error);
        let envelope: Envelope = serde_json::from_slice(&reply.body).map_err(nonsense)?;
        if let Some(complaint) = envelope.errors.iter().flatten().next() {
            return Err(self.complaint(operation, &reply, &complaint.message));
        }
        serde_json::from_value(envelope.data.unwrap_or_default()).map_err(nonsense)
    }

    /// Errors come with 200, and have nothing but words. An order whose error nobody knows is in doubt.
    fn complaint(&self, operation: Operation, reply: &Reply, says: &str) -> Fault {
        let unknown = if operation.spends() { Outcome::Ambiguous } else { Outcome::Transient };
        let outcome = TABLES.read_code(operation, "", says).unwrap_or(unknown);
        Fault { status: Some(reply.status.as_u16()), ..self.wire.fault(operation, outcome, says) }
    }
}

// === impl Least ===

impl Least {
    fn size(&self) -> Option<Size> {
        let vcpus = read::thousandths(&self.min_vcpu)?;
        let memory_gib = read::thousandths(&self.min_memory)?;
        let memory_mib = u32::try_from(u64::from(memory_gib) * 1024 / 1000).ok()?;
        Some(Size { vcpus, memory_mib })
    }
}
