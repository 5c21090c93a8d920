// SPDX-License-Identifier: Apache-2.0
//! Manifest: the services that one lease pays for.

use super::{LeaseId, without_defaults};
use crate::crd::schema::any_object;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The workload of one lease. The object's name is the lease's namespace.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "akash.network",
    version = "v2beta2",
    kind = "Manifest",
    plural = "manifests",
    singular = "manifest",
    shortname = "mani",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    doc = "The services that one lease pays for.",
    printcolumn(name = "Group", type_ = "string", json_path = ".spec.group.name"),
    printcolumn(name = "Services", type_ = "string", json_path = ".spec.group.services[*].name"),
    printcolumn(name = "Owner", type_ = "string", json_path = ".spec.lease_id.owner", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ManifestSpec {
    /// The lease that this workload belongs to.
    pub lease_id: LeaseId,
    /// The services and their name as a group.
    pub group: ManifestGroup,
}

/// Services that are placed together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ManifestGroup {
    /// Name that the tenant gave.
    pub name: String,
    /// What runs.
    pub services: Vec<ManifestService>,
}

/// One container image and how it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ManifestService {
    /// Name within the manifest.
    pub name: String,
    /// Container image.
    pub image: String,
    /// Replaces the image's entry point.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Replaces the image's arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment as `NAME=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// What one replica gets.
    pub resources: ManifestResources,
    /// What one replica got in v2beta1; later versions use `resources`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<ManifestUnit>,
    /// Number of replicas.
    pub count: i64,
    /// Ports that others may reach.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expose: Vec<ManifestExpose>,
    /// Mounts and permissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<ManifestParams>,
    /// Where the service must run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_params: Option<SchedulerParams>,
    /// Login for the registry of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<ImageCredentials>,
}

/// Resources of one replica.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ManifestResources {
    /// Number of this resource set within the group.
    pub id: i64,
    /// Thousandths of a CPU.
    pub cpu: ManifestUnits,
    /// Whole GPUs.
    pub gpu: ManifestUnits,
    /// Main memory.
    pub memory: ManifestMemory,
    /// Volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub storage: Vec<ManifestStorage>,
}

/// A counted resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ManifestUnits {
    /// How many.
    pub units: i64,
    /// What kind is wanted, such as the GPU model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<Attribute>>,
}

/// Memory of one replica.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ManifestMemory {
    /// Bytes, a decimal number written as text.
    pub size: String,
    /// What kind is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<Attribute>>,
}

/// A volume of one replica.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ManifestStorage {
    /// Name that `params.storage` refers to.
    pub name: String,
    /// Bytes, a decimal number written as text.
    pub size: String,
    /// Storage class and whether the volume outlives the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<Attribute>>,
}

/// Resources of one replica in v2beta1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ManifestUnit {
    /// Thousandths of a CPU.
    pub cpu: i64,
    /// Bytes, a decimal number written as text.
    pub memory: String,
    /// Volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub storage: Vec<ManifestStorage>,
}

/// One property of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct Attribute {
    /// Name of the property.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// One port and who may reach it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ManifestExpose {
    /// Port of the container.
    pub port: i32,
    /// Port that others see; 0 means the same as `port`.
    pub external_port: i32,
    /// `TCP` or `UDP`; empty means TCP.
    pub proto: String,
    /// Service of the group that may connect, when not all may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Whether the port is public.
    pub global: bool,
    /// Hostnames the tenant wants to serve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// How the proxy treats requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_options: Option<HttpOptions>,
    /// Name of the leased address that carries this port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// Number of the endpoint within the deployment.
    pub endpoint_sequence_number: i64,
}

/// Limits of the proxy before a service. Times are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HttpOptions {
    /// Largest request in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_body_size: Option<i64>,
    /// Longest wait for the service's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_timeout: Option<i64>,
    /// Longest wait while sending to the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_timeout: Option<i64>,
    /// How many replicas to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_tries: Option<i64>,
    /// How long to go on trying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_timeout: Option<i64>,
    /// Which failures lead to the next replica; `off` stands alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next_cases: Vec<String>,
}

/// Mounts and permissions of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ManifestParams {
    /// Where the volumes are mounted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub storage: Vec<StorageMount>,
    /// What the service may read about its own lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<ManifestPermissions>,
    /// Confidential computing, as newer providers write it. Kept as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub tee: Option<Map<String, Value>>,
}

/// A mount of one volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = without_defaults)]
pub struct StorageMount {
    /// The volume.
    pub name: String,
    /// Path in the container.
    pub mount: String,
    /// Refuse writes.
    pub read_only: bool,
}

/// What a service may do with its own lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ManifestPermissions {
    /// Things it may read, such as `deployment` and `logs`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
}

/// Where a service must run; the provider chooses this when it places the order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct SchedulerParams {
    /// RuntimeClass of the pods.
    pub runtime_class: String,
    /// Hardware that was promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<SchedulerResources>,
}

/// Hardware that was promised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SchedulerResources {
    /// The GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<SchedulerGpu>,
}

/// The GPU that was promised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct SchedulerGpu {
    /// Maker, lower case.
    pub vendor: String,
    /// Model, lower case.
    pub model: String,
    /// Memory of one GPU, such as `80Gi`.
    pub memory_size: String,
    /// How it is attached, such as `sxm`.
    pub interface: String,
}

/// Login for a container registry. The wire format has the password in clear text: never log this type's fields.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ImageCredentials {
    /// Registry.
    pub host: String,
    /// Mail address of the account.
    pub email: String,
    /// Account.
    pub username: String,
    /// Password.
    pub password: String,
}

impl std::fmt::Debug for ImageCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageCredentials").field("host", &self.host).finish_non_exhaustive()
    }
}
