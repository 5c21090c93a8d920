// SPDX-License-Identifier: Apache-2.0
//! MiniCluster: a Flux Framework cluster that lives in the pods of one indexed Job.

use crate::crd::schema::atomic_conditions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::{Container, Flux, Pod, or_null, unset};

/// What the cluster should be.
#[derive(Clone, CustomResource, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "flux-framework.org",
    version = "v1alpha2",
    kind = "MiniCluster",
    plural = "miniclusters",
    singular = "minicluster",
    namespaced,
    status = "MiniClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A Flux Framework cluster that lives in the pods of one indexed Job.",
    cel,
    // Only for a new object, which has no status. Later the controller brings `size` back to the most there can be: a
    // refusal would keep an autoscaler below it for ever.
    validation = Rule::new(
        "has(self.status) || !has(self.spec.maxSize) || self.spec.maxSize == 0 || self.spec.maxSize >= self.spec.size"
    )
    .message("maxSize must not be below size")
    .field_path(".spec.maxSize"),
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.size",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"JobMiniClusterReady\")].status"),
    printcolumn(
        name = "Finished",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"JobFinished\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "!has(self.minSize) || self.minSize <= self.size",
        "minSize must not be above size: the brokers would wait for pods that never come"
    ),
    validation = (
        "!(has(self.shareProcessNamespace) && self.shareProcessNamespace && has(self.pod) && has(self.pod.hostPID) && self.pod.hostPID)",
        "shareProcessNamespace and pod.hostPID cannot both be true"
    )
)]
pub struct MiniClusterSpec {
    /// Containers of every pod. Exactly one of them runs Flux; a single container does so without being told.
    #[schemars(length(max = 256))]
    #[x_kube(
        validation = (
            "size(self) == 1 || self.exists_one(c, has(c.runFlux) && c.runFlux)",
            "exactly one container must have runFlux set to true"
        ),
        validation = (
            "size(self) == 1 || self.all(c, (has(c.runFlux) && c.runFlux) || (has(c.name) && c.name != ''))",
            "a container that does not run Flux must have a name"
        ),
        validation = (
            "self.all(c, !has(c.name) || c.name == '' || size(self) == 1 || (has(c.runFlux) && c.runFlux) || c.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",
            "the name of a container is one of lowercase letters, digits and dashes that begins with a letter: it also names its Service"
        ),
        validation = (
            "self.all(c, !(has(c.launcher) && c.launcher && has(c.batch) && c.batch))",
            "launcher and batch cannot both be true in one container"
        ),
        validation = (
            "self.all(c, !(size(self) == 1 || (has(c.runFlux) && c.runFlux)) || !has(c.command) || c.command == '' || !has(c.commands) || !has(c.commands.script) || c.commands.script == '')",
            "the container that runs Flux takes either command or commands.script, not both"
        )
    )]
    pub containers: Vec<Container>,
    /// Containers that run once beside the cluster, all in one pod.
    #[serde(default, deserialize_with = "or_null", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(
        validation = ("self.all(c, has(c.name) && c.name != '')", "a service container must have a name"),
        validation = (
            "self.all(c, !has(c.name) || c.name == '' || c.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",
            "the name of a container is one of lowercase letters, digits and dashes that begins with a letter"
        ),
        validation = (
            "self.all(c, !has(c.commands) || ((!has(c.commands.pre) || c.commands.pre == '') && (!has(c.commands.brokerPre) || c.commands.brokerPre == '') && (!has(c.commands.workerPre) || c.commands.workerPre == '')))",
            "a service container runs no broker: commands.pre, brokerPre and workerPre have no place in it"
        )
    )]
    pub services: Vec<Container>,
    /// Pods to run now, one broker in each.
    #[serde(default = "one")]
    #[x_kube(validation = ("self >= 1", "size must be at least 1: the lead broker needs a pod"))]
    pub size: i32,
    /// Most pods that the cluster can be scaled to; as many brokers are known from the start. 0: as `size`.
    #[serde(default, skip_serializing_if = "unset")]
    #[schemars(range(min = 0))]
    pub max_size: i32,
    /// Brokers that must be there before work starts. 0: as `size`.
    #[serde(default, skip_serializing_if = "unset")]
    #[x_kube(validation = ("self >= 0", "minSize must not be negative"))]
    pub min_size: i32,
    /// Tasks of the submitted work in sum. 0: only the number of nodes is asked for.
    #[serde(default = "one")]
    #[x_kube(validation = ("self >= 0", "tasks must not be negative"))]
    pub tasks: i32,
    /// Start no work, and keep the lead broker up for people.
    #[serde(default)]
    pub interactive: bool,
    /// Delete the MiniCluster when its lead pod has ended.
    #[serde(default)]
    pub cleanup: bool,
    /// Seconds that the Job may take in sum.
    #[serde(default = "year")]
    #[x_kube(validation = ("self >= 1", "deadlineSeconds must be at least 1"))]
    pub deadline_seconds: i64,
    /// How often pods of the Job may fail. 0: 100 times.
    #[serde(default, skip_serializing_if = "unset")]
    #[schemars(range(min = 0))]
    pub backoff_limit: i32,
    /// Labels of the Job, such as the name of a queue.
    #[serde(default, deserialize_with = "or_null", skip_serializing_if = "BTreeMap::is_empty")]
    pub job_labels: BTreeMap<String, String>,
    /// Let the containers of a pod see each other's processes.
    #[serde(default, skip_serializing_if = "unset")]
    pub share_process_namespace: bool,
    /// Settings of Flux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flux: Option<Flux>,
    /// What is printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<Logging>,
    /// Network of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Saved state to start from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<Archive>,
    /// Settings of every pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Pod>,
}

impl Default for MiniClusterSpec {
    fn default() -> Self {
        Self {
            containers: Vec::new(),
            services: Vec::new(),
            size: one(),
            max_size: 0,
            min_size: 0,
            tasks: one(),
            interactive: false,
            cleanup: false,
            deadline_seconds: year(),
            backoff_limit: 0,
            job_labels: BTreeMap::new(),
            share_process_namespace: false,
            flux: None,
            logging: None,
            network: None,
            archive: None,
            pod: None,
        }
    }
}

fn one() -> i32 {
    1
}

/// Upstream's idea of "no deadline": nearly a year.
fn year() -> i64 {
    31_500_000
}

/// What is printed by brokers and entry points.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Logging {
    /// Print only what the work prints.
    pub quiet: bool,
    /// Stop an entry point at the first command that fails.
    pub strict: bool,
    /// Ask Flux for more words.
    pub debug: bool,
    /// Print what the message layer does.
    pub zeromq: bool,
    /// Measure how long the start and the work take.
    pub timed: bool,
}

/// Network of the pods.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Network {
    /// Name of the headless Service. Empty: the name of the MiniCluster.
    #[serde(skip_serializing_if = "unset")]
    pub headless_name: String,
    /// Let several pods of the cluster share a node.
    #[serde(skip_serializing_if = "unset")]
    pub disable_affinity: bool,
}

/// Saved state of an earlier cluster.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Archive {
    /// File in the container; it is read at start when it is there.
    #[serde(skip_serializing_if = "unset")]
    pub path: String,
}

/// What the cluster is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MiniClusterStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pods that the Job is set to.
    pub size: i32,
    /// Most pods that the cluster can be scaled to.
    pub maximum_size: i32,
    /// Label selector of the pods, for autoscalers.
    pub selector: String,
    /// Brokers that are ready.
    #[serde(default, skip_serializing_if = "unset")]
    pub ready: i32,
    /// When the Job started its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the work was over, well or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// What the lead broker ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Kept for older clients, which require the field.
    pub jobid: String,
    /// How the cluster is doing.
    #[serde(default, deserialize_with = "or_null", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "atomic_conditions")]
    pub conditions: Vec<Condition>,
}
