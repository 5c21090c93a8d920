// SPDX-License-Identifier: Apache-2.0
//! Settings of every pod of a MiniCluster.

use crate::crd::schema::embedded;
use k8s_openapi::{
    api::core::v1::{PodSecurityContext, Toleration},
    apimachinery::pkg::api::resource::Quantity,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::{or_null, unset};

/// Settings of every pod.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.restartPolicy) || self.restartPolicy in ['', 'OnFailure', 'Never']",
    "message": "pods of a Job take the restartPolicy OnFailure or Never",
}]))]
pub struct Pod {
    /// Annotations to add.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    pub annotations: BTreeMap<String, String>,
    /// Labels to add.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    pub labels: BTreeMap<String, String>,
    /// When to restart containers. Empty: when they fail.
    #[serde(skip_serializing_if = "unset")]
    pub restart_policy: String,
    /// Service account to run as.
    #[serde(skip_serializing_if = "unset")]
    pub service_account_name: String,
    /// Give the pod a token of its service account.
    #[serde(skip_serializing_if = "unset")]
    pub automount_service_account_token: bool,
    /// Runtime class.
    #[serde(skip_serializing_if = "unset")]
    pub runtime_class_name: String,
    /// Scheduler that places the pods.
    #[serde(skip_serializing_if = "unset")]
    pub scheduler_name: String,
    /// Labels that a node must have.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    pub node_selector: BTreeMap<String, String>,
    /// Labels of which a node must have one of the values.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    pub node_affinity: BTreeMap<String, Vec<String>>,
    /// Taints that the pods put up with.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    #[schemars(schema_with = "embedded::<Vec<Toleration>>")]
    pub tolerations: Vec<Toleration>,
    /// How names are looked up.
    #[serde(skip_serializing_if = "unset")]
    pub dns_policy: String,
    /// Share the IPC namespace of the node.
    #[serde(rename = "hostIPC", skip_serializing_if = "unset")]
    pub host_ipc: bool,
    /// See the processes of the node.
    #[serde(rename = "hostPID", skip_serializing_if = "unset")]
    pub host_pid: bool,
    /// Overhead of the pods, as their runtime class has it.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    #[schemars(schema_with = "embedded::<BTreeMap<String, Quantity>>")]
    pub resources: BTreeMap<String, Quantity>,
    /// Rights of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<PodSecurityContext>")]
    pub security_context: Option<PodSecurityContext>,
}
