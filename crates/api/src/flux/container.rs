// SPDX-License-Identifier: Apache-2.0
//! A container of a MiniCluster, of the pods or of the services beside them.

use crate::crd::schema::embedded;
use k8s_openapi::api::core::v1::{ResourceRequirements, SecurityContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::{Volume, or_null, unset};

/// One container.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// Image to run.
    pub image: String,
    /// Name. The container that runs Flux is named after the MiniCluster.
    #[serde(skip_serializing_if = "unset")]
    #[schemars(length(max = 63))]
    pub name: String,
    /// What to run: the work, if this container runs Flux, else a shell line.
    #[serde(skip_serializing_if = "unset")]
    pub command: String,
    /// This container runs the broker and the work.
    #[serde(skip_serializing_if = "unset")]
    pub run_flux: bool,
    /// The command submits work by itself; do not wrap it.
    #[serde(skip_serializing_if = "unset")]
    pub launcher: bool,
    /// Every line of the command is a piece of work of its own.
    #[serde(skip_serializing_if = "unset")]
    pub batch: bool,
    /// Take the lines of a batch as they are.
    #[serde(skip_serializing_if = "unset")]
    pub batch_raw: bool,
    /// Directory for the output of a batch. Empty: `/tmp/fluxout`.
    #[serde(skip_serializing_if = "unset")]
    pub logs: String,
    /// Directory to start in.
    #[serde(skip_serializing_if = "unset")]
    pub working_dir: String,
    /// Name of the Secret to pull the image with.
    #[serde(skip_serializing_if = "unset")]
    pub image_pull_secret: String,
    /// When to pull the image. Empty: if the node does not have it.
    #[serde(skip_serializing_if = "unset")]
    pub image_pull_policy: String,
    /// Pull the image even if the node has it. It wins over `imagePullPolicy`.
    pub pull_always: bool,
    /// Ports to open.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    #[schemars(length(max = 64), extend("x-kubernetes-validations" = [
        {"rule": "self.all(p, p >= 1 && p <= 65535)", "message": "a port is a number from 1 to 65535"},
        {"rule": "self.all(p, self.exists_one(q, q == p))", "message": "a port is listed twice in one container"},
    ]))]
    pub ports: Vec<i32>,
    /// Environment variables.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    pub environment: BTreeMap<String, String>,
    /// Environment variables whose values are in Secrets.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    pub secrets: BTreeMap<String, SecretKey>,
    /// Leave the entry point of the image alone.
    #[serde(skip_serializing_if = "unset")]
    pub no_wrap_entrypoint: bool,
    /// Volumes by name.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    #[schemars(extend("maxProperties" = 256))]
    pub volumes: BTreeMap<String, Volume>,
    /// Commands to run when the container starts and stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life_cycle: Option<LifeCycle>,
    /// What the container needs and may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<ResourceRequirements>")]
    pub resources: Option<ResourceRequirements>,
    /// Rights of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<SecurityContext>")]
    pub security_context: Option<SecurityContext>,
    /// Shell text to run before and after the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Commands>,
}

impl Default for Container {
    fn default() -> Self {
        Self {
            image: "ghcr.io/rse-ops/accounting:app-latest".into(),
            name: String::new(),
            command: String::new(),
            run_flux: false,
            launcher: false,
            batch: false,
            batch_raw: false,
            logs: String::new(),
            working_dir: String::new(),
            image_pull_secret: String::new(),
            image_pull_policy: String::new(),
            pull_always: false,
            ports: Vec::new(),
            environment: BTreeMap::new(),
            secrets: BTreeMap::new(),
            no_wrap_entrypoint: false,
            volumes: BTreeMap::new(),
            life_cycle: None,
            resources: None,
            security_context: None,
            commands: None,
        }
    }
}

/// One entry of a Secret.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SecretKey {
    /// Name of the Secret.
    pub name: String,
    /// Key in the Secret.
    pub key: String,
}

/// Commands to run when the container starts and stops.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LifeCycle {
    /// Run after the start.
    #[serde(skip_serializing_if = "unset")]
    pub post_start_exec: String,
    /// Run before the end.
    #[serde(skip_serializing_if = "unset")]
    pub pre_stop_exec: String,
}

/// Shell text to run before and after the work.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Commands {
    /// Before everything else.
    #[serde(skip_serializing_if = "unset")]
    pub init: String,
    /// Before the broker, in every pod.
    #[serde(skip_serializing_if = "unset")]
    pub pre: String,
    /// Before the lead broker only.
    #[serde(skip_serializing_if = "unset")]
    pub broker_pre: String,
    /// Before the other brokers only.
    #[serde(skip_serializing_if = "unset")]
    pub worker_pre: String,
    /// After the broker, or after the command of a sidecar.
    #[serde(skip_serializing_if = "unset")]
    pub post: String,
    /// Before the command of a sidecar.
    #[serde(skip_serializing_if = "unset")]
    pub service_pre: String,
    /// Words to put before the command that submits work.
    #[serde(skip_serializing_if = "unset")]
    pub prefix: String,
    /// A script to run in place of a command.
    #[serde(skip_serializing_if = "unset")]
    pub script: String,
}
