// SPDX-License-Identifier: Apache-2.0
//! Settings of Flux itself: brokers, scheduler, where its programs come from, and bursting.

use crate::crd::schema::embedded;
use k8s_openapi::api::core::v1::{ResourceRequirements, SecurityContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::{or_null, unset};

/// Settings of Flux.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Flux {
    /// The init container that brings Flux along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<FluxContainer>,
    /// Has no effect; earlier versions chose programs by it.
    #[serde(skip_serializing_if = "unset")]
    pub arch: String,
    /// Command that submits work. Empty: `flux submit`.
    #[serde(skip_serializing_if = "unset")]
    pub submit_command: String,
    /// Programs to wrap the brokers with, joined with commas.
    #[serde(skip_serializing_if = "unset")]
    pub wrap: String,
    /// How long a broker tries to reach its parent, such as `5s`. An empty text leaves it to Flux.
    pub connect_timeout: String,
    /// Flags to add to the command that submits work.
    #[serde(skip_serializing_if = "unset")]
    pub option_flags: String,
    /// Give only the lead broker a Service.
    #[serde(skip_serializing_if = "unset")]
    pub minimal_service: bool,
    /// Do not set the path of the brokers' socket.
    #[serde(skip_serializing_if = "unset")]
    pub disable_socket: bool,
    /// Do not let sidecars wait for the brokers' socket.
    #[serde(skip_serializing_if = "unset")]
    pub no_wait_socket: bool,
    /// Shape of the broker tree, such as `kary:2` or `binomial`.
    #[serde(skip_serializing_if = "unset")]
    pub topology: String,
    /// Let a worker end when its broker ends, whatever the outcome.
    #[serde(skip_serializing_if = "unset")]
    pub complete_workers: bool,
    /// How much brokers print: from 0, only emergencies, to 7, everything.
    pub log_level: i32,
    /// CURVE certificate of the brokers. Empty: one is made.
    #[serde(skip_serializing_if = "unset")]
    pub curve_cert: String,
    /// The scheduler of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// Name of a Secret with a MUNGE key. It has no effect.
    #[serde(skip_serializing_if = "unset")]
    pub munge_secret: String,
    /// Work together with other clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bursting: Option<Bursting>,
    /// Whole broker configuration, to stand in place of the one that is made.
    #[serde(skip_serializing_if = "unset")]
    pub broker_config: String,
    /// Variables to set when the environment of Flux is loaded.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    pub environment: BTreeMap<String, String>,
}

impl Default for Flux {
    fn default() -> Self {
        Self {
            container: None,
            arch: String::new(),
            submit_command: String::new(),
            wrap: String::new(),
            connect_timeout: "5s".into(),
            option_flags: String::new(),
            minimal_service: false,
            disable_socket: false,
            no_wait_socket: false,
            topology: String::new(),
            complete_workers: false,
            log_level: 6,
            curve_cert: String::new(),
            scheduler: None,
            munge_secret: String::new(),
            bursting: None,
            broker_config: String::new(),
            environment: BTreeMap::new(),
        }
    }
}

/// The init container that brings Flux along.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FluxContainer {
    /// The image of the work has Flux already.
    pub disable: bool,
    /// Name of the container and of the volume that it fills.
    pub name: String,
    /// Image with a Flux installation for the operating system of the work.
    pub image: String,
    /// Where the installation is mounted.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "self == '' || self.startsWith('/')", "message": "mountPath must be an absolute path",
    }]))]
    pub mount_path: String,
    /// Directory to start in.
    #[serde(skip_serializing_if = "unset")]
    pub working_dir: String,
    /// Python path of Flux. Empty: it is looked for.
    #[serde(skip_serializing_if = "unset")]
    pub python_path: String,
    /// Pull the image even if the node has it.
    pub pull_always: bool,
    /// Name of the Secret to pull the image with.
    #[serde(skip_serializing_if = "unset")]
    pub image_pull_secret: String,
    /// What the container needs and may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<ResourceRequirements>")]
    pub resources: Option<ResourceRequirements>,
    /// Rights of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<SecurityContext>")]
    pub security_context: Option<SecurityContext>,
}

impl Default for FluxContainer {
    fn default() -> Self {
        Self {
            disable: false,
            name: "flux-view".into(),
            image: "ghcr.io/converged-computing/flux-view-ubuntu:tag-noble".into(),
            mount_path: "/mnt/flux".into(),
            working_dir: String::new(),
            python_path: String::new(),
            pull_always: false,
            image_pull_secret: String::new(),
            resources: None,
            security_context: None,
        }
    }
}

/// The scheduler of the cluster.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Scheduler {
    /// Use the simple scheduler of Flux, not Fluxion.
    #[serde(skip_serializing_if = "unset")]
    pub simple: bool,
    /// Order of the queue, such as `fcfs` or `easy`. Empty: `fcfs`.
    #[serde(skip_serializing_if = "unset")]
    pub queue_policy: String,
}

/// Work together with other clusters. All of them must list the same hosts in the same order.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.hostlist) || self.hostlist == '' || !has(self.clusters) || size(self.clusters) == 0",
    "message": "hostlist and clusters cannot both be set",
}]))]
pub struct Bursting {
    /// The cluster to join. Absent, or with an empty address: this cluster leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead_broker: Option<LeadBroker>,
    /// All hosts, written as Flux does, such as `burst-[0-3]`.
    #[serde(skip_serializing_if = "unset")]
    pub hostlist: String,
    /// Clusters that may join.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    pub clusters: Vec<BurstCluster>,
}

/// The lead broker of the cluster to join.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.address == '' || (self.name != '' && self.size >= 1)",
    "message": "leadBroker needs the name and the size of the cluster that leads",
}]))]
pub struct LeadBroker {
    /// Host name or IP address.
    pub address: String,
    /// Name of the MiniCluster that leads.
    pub name: String,
    /// Most pods that the leading cluster can have.
    pub size: i32,
    /// Port of the lead broker.
    #[serde(default = "lead_port")]
    pub port: i32,
}

impl Default for LeadBroker {
    fn default() -> Self {
        Self { address: String::new(), name: String::new(), size: 0, port: lead_port() }
    }
}

fn lead_port() -> i32 {
    8050
}

/// A cluster that may join.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct BurstCluster {
    /// Name. Empty: `burst-` and its place in the list.
    #[serde(skip_serializing_if = "unset")]
    pub name: String,
    /// Number of hosts. 0: as many as this cluster has.
    #[serde(skip_serializing_if = "unset")]
    #[schemars(range(min = 0))]
    pub size: i32,
}
