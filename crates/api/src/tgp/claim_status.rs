// SPDX-License-Identifier: Apache-2.0
//! What is known about the machine of a claim. The nodes controller writes all of it.

use crate::crd::schema::{conditions, embedded};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Condition types of a claim, in the order of its life.
pub mod claim_conditions {
    /// The cloud gave us the machine.
    pub const LAUNCHED: &str = "Launched";
    /// The machine joined as a node.
    pub const REGISTERED: &str = "Registered";
    /// The node is ready, its startup taints are gone and it shows what the offer promised.
    pub const INITIALIZED: &str = "Initialized";
    /// Pods may run here. Follows `Initialized` and the node's own health.
    pub const READY: &str = "Ready";
    /// Pool or class have changed since.
    pub const DRIFTED: &str = "Drifted";
    /// Nothing of value runs here.
    pub const CONSOLIDATABLE: &str = "Consolidatable";
    /// The cloud takes the machine back.
    pub const INTERRUPTED: &str = "Interrupted";
    /// Why the claim is being given up.
    pub const DISRUPTION_REASON: &str = "DisruptionReason";
    /// The pods have left.
    pub const DRAINED: &str = "Drained";
    /// The volumes have left.
    pub const VOLUMES_DETACHED: &str = "VolumesDetached";
    /// The cloud was told to end the machine.
    pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
    /// The cloud confirmed the end, and the ledger is closed.
    pub const TERMINATED: &str = "Terminated";
}

/// State of the machine. Times and amounts move only with an event or a booking, never with each look.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "!has(oldSelf.providerID) || (has(self.providerID) && self.providerID == oldSelf.providerID)",
        "providerID never changes: it is the only way to the machine"
    ),
    validation = (
        "!has(oldSelf.launch) || has(self.launch)",
        "launch stays: it is the record of what was asked of the cloud"
    ),
    validation = (
        "!has(oldSelf.ledger) || has(self.ledger)",
        "ledger stays: it is the record of what was spent"
    )
)]
pub struct GPUNodeClaimStatus {
    /// Where the claim is in its life, for people. Programs read the conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ClaimPhase>,
    /// `Launched`, `Registered`, `Initialized`, `Ready`; when it ends `Drained`, `InstanceTerminating`, `Terminated`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// The generation that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What is asked of the cloud. Written before the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchIntent>,
    /// The machine in the form that nodes carry, `<provider>://…`. Written as soon as the cloud answers, or when the
    /// machine is found by its name; never changed.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub provider_id: Option<String>,
    /// The cloud's own id of the machine. Written with `providerID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub instance_id: Option<String>,
    /// State of the machine as the cloud last told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_state: Option<MachineState>,
    /// Image that the machine booted.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Address from outside.
    #[serde(default, rename = "publicIP", skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<String>,
    /// Address in the cloud's or the tailnet's private network.
    #[serde(default, rename = "privateIP", skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<String>,
    /// The node that the machine became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// What the node has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<BTreeMap<String, Quantity>>")]
    pub capacity: Option<BTreeMap<String, Quantity>>,
    /// What the node gives to pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<BTreeMap<String, Quantity>>")]
    pub allocatable: Option<BTreeMap<String, Quantity>>,
    /// When a pod last came or went. A node is idle when this is long ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_pod_event_time: Option<Time>,
    /// Until when the machine may live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<ClaimLease>,
    /// What the machine has cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<ClaimLedger>,
    /// How far the end is. Present from the first call that ends the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
}

/// Life of a claim in one word. The words are those of the oldest generation of this API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ClaimPhase {
    /// Written; the cloud has not been asked.
    Pending,
    /// The cloud has been asked.
    Provisioning,
    /// The machine exists and starts.
    Booting,
    /// The node is there and is not complete.
    Joining,
    /// Pods may run.
    Ready,
    /// The end has begun.
    Terminating,
    /// Given up; the conditions say why.
    Failed,
}

/// State of a machine, the same words for every cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MachineState {
    Pending,
    Running,
    Terminating,
    Terminated,
    Failed,
    Unknown,
}

/// What is asked of the cloud.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaunchIntent {
    /// Which call this is, from 1. It grows only after a listing showed that the call before left no machine.
    #[schemars(range(min = 1))]
    #[x_kube(validation = ("self >= oldSelf", "launch.attempt never goes back"))]
    pub attempt: i32,
    /// Name of the machine at the cloud. It follows from the claim's UID alone, so that an operator that lost its memory
    /// still finds the machine.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = ("self == oldSelf", "launch.machineName never changes"))]
    pub machine_name: String,
    /// Token that makes the call idempotent, derived from UID and attempt. Written down so that a newer operator
    /// repeats an older one's call with the same token.
    #[schemars(length(min = 1, max = 128))]
    pub token: String,
    /// When the call was decided.
    pub requested_at: Time,
    /// When the outcome became unclear: time-out, lost connection, error after sending. Absent when it is clear. While
    /// it is set the cloud is listed, not called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ambiguous_since: Option<Time>,
}

/// Until when a machine may live.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimLease {
    /// The drain starts now at the latest. Follows from the launch and `spec.expireAfter`.
    pub expires_at: Time,
    /// When the cloud ends the machine by itself if we never come back. Absent where the cloud cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_ends_at: Option<Time>,
}

/// What a machine has cost. All amounts are dollars, as decimal numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(oldSelf.closedAt) || (has(self.closedAt) && self.closedAt == oldSelf.closedAt && self.spent == oldSelf.spent)",
    "a closed ledger never changes"
))]
pub struct ClaimLedger {
    /// When the cloud began to charge: its own time, or that of the first call.
    pub opened_at: Time,
    /// Price per hour that the cloud charges, where it differs from `spec.price.hourly`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub hourly: Option<String>,
    /// Booked from `openedAt` to `bookedUntil`.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub spent: String,
    /// Up to when `spent` counts. Moves in steps, and with events.
    pub booked_until: Time,
    /// When the cloud stopped charging: its own time, or that of the confirmed end. Nothing is booked after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Time>,
}

/// How far the end of a machine is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Termination {
    /// When the cloud was first told.
    pub requested_at: Time,
    /// How often it was told.
    #[schemars(range(min = 0))]
    pub calls: i32,
    /// How often in a row a complete answer said that the machine is gone. Back to 0 when it shows up again.
    #[schemars(range(min = 0))]
    pub absent_count: i32,
    /// The first of these answers. The last must be later by the cloud's consistency window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_since: Option<Time>,
    /// When enough of them had come. Keys, devices and tokens are removed after this, then the finalizer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "termination.confirmedAt never changes"))]
    pub confirmed_at: Option<Time>,
}
