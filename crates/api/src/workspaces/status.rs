// SPDX-License-Identifier: Apache-2.0
//! What is known about a WorkspaceDeployment.

use super::{AccessProtocol, ResourceTotals, WorkspaceResourceSpec};
use crate::crd::schema::conditions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceDeploymentStatus {
    /// Where the workspace is in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<WorkspacePhase>,
    /// `Ready`, and one for each step on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// The generation that was deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Name of the release and its ServiceSet. Read it, do not compute it: old objects have older names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_entry_name: Option<String>,
    /// What the class and the deployment ask for together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_resources: Option<WorkspaceResourceSpec>,
    /// What the class needs on the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub prerequisites: Vec<PrerequisiteStatus>,
    /// Whether the cluster has room. Information only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feasibility: Option<Feasibility>,
    /// How people reach the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub access: Vec<AccessStatus>,
    /// What was seen when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_context: Option<FailureContext>,
    /// Text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Life of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum WorkspacePhase {
    Pending,
    InstallingPrerequisites,
    Waiting,
    Deploying,
    Running,
    Failed,
    Deleting,
}

/// State of one prerequisite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrerequisiteStatus {
    /// Name of the template.
    pub name: String,
    /// How far it is.
    pub phase: PrerequisitePhase,
    /// Who installed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PrerequisiteSource>,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How far a prerequisite is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PrerequisitePhase {
    Pending,
    Installing,
    Satisfied,
    Failed,
}

/// Who installed a prerequisite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PrerequisiteSource {
    Workspace,
    Colony,
}

/// Comparison of what is wanted with what is free.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Feasibility {
    /// Whether there was room.
    pub fits: bool,
    /// When this was looked at.
    pub evaluated_at: Time,
    /// What all replicas need.
    pub demanded: ResourceTotals,
    /// What was free.
    pub available: ResourceTotals,
    /// What lacked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<ResourceTotals>,
    /// Text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// State of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessStatus {
    /// Name of the endpoint in the class.
    pub name: String,
    /// What is spoken.
    pub protocol: AccessProtocol,
    /// Whether it answers.
    pub ready: bool,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What was seen when a workspace failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureContext {
    /// The phase before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_when_failed: Option<WorkspacePhase>,
    /// Why, as one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the delivery engine said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_set_status: Option<ServiceSetSnapshot>,
    /// The last events, newest first, five at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent_events: Vec<EventSnapshot>,
}

/// What the delivery engine said about a release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSetSnapshot {
    /// Name of the ServiceSet.
    pub name: String,
    /// Whether all of it was deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed: Option<bool>,
    /// State of each service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceSnapshot>,
}

/// State of one service of a ServiceSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSnapshot {
    /// Name of the service.
    pub name: String,
    /// The engine's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
}

/// One event about a workspace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventSnapshot {
    /// Reason of the event.
    pub reason: String,
    /// `Normal` or `Warning`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Text of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Time>,
}
