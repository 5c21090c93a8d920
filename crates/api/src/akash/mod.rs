// SPDX-License-Identifier: Apache-2.0
//! Group `akash.network`: what a provider runs for its leases, and the hostnames and addresses these leases own.
//!
//! The provider process writes these objects and leaves nothing out that is not empty. Upstream requires no field, so
//! neither do we: a plain field holds its zero value when it is absent, as it does for the provider.

mod host;
mod leased_ip;
mod manifest;

pub use host::*;
pub use leased_ip::*;
pub use manifest::*;

use crate::crd::schema::conditions;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResourceExt;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

/// The namespace that holds all objects of this group unless the provider is told otherwise.
pub const DEFAULT_NAMESPACE: &str = "lease";

/// Label keys that the provider and its operators share.
pub mod labels {
    /// `"true"` on every managed object.
    pub const MANAGED: &str = "akash.network";
    /// The namespace of the lease.
    pub const NAMESPACE: &str = "akash.network/namespace";
    /// Name of the service in the manifest; also the pod selector.
    pub const SERVICE: &str = "akash.network/manifest-service";
    /// resourceVersion of the manifest that an object was made from.
    pub const MANIFEST_VERSION: &str = "akash.network/manifest.resource.version";
    /// Tenant of the lease.
    pub const OWNER: &str = "akash.network/lease.id.owner";
    /// Deployment sequence of the lease.
    pub const DSEQ: &str = "akash.network/lease.id.dseq";
    /// Group sequence of the lease.
    pub const GSEQ: &str = "akash.network/lease.id.gseq";
    /// Order sequence of the lease.
    pub const OSEQ: &str = "akash.network/lease.id.oseq";
    /// Provider of the lease.
    pub const PROVIDER: &str = "akash.network/lease.id.provider";
    /// `metal-lb` on the Services that carry a leased address.
    pub const SERVICE_TARGET: &str = "akash.network/service-target";
    /// Annotation with the time of the last declaration, so that an unchanged spec still gives an event.
    pub const UPDATED_AT: &str = "akash.network/lease.updated_at";
}

/// The name of a lease on the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct LeaseId {
    /// Address of the tenant.
    pub owner: String,
    /// Deployment sequence, a decimal number written as text.
    pub dseq: String,
    /// Group sequence.
    pub gseq: i64,
    /// Order sequence.
    pub oseq: i64,
    /// Address of the provider.
    pub provider: String,
}

/// What the operator reports about a hostname or an address. Upstream reports nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseObjectStatus {
    /// The generation that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The public address: that of the leased IP, or that of the ingress that serves the hostname.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// `Ready`, with the reason when it is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// The CRDs of this group, as derived; `crate::crds` finishes them.
pub fn crds() -> Vec<CustomResourceDefinition> {
    [Manifest::crd(), ProviderHost::crd(), ProviderLeasedIP::crd()].map(with_old_version).into()
}

/// Adds the version that is no longer served but may still be named by a cluster's stored versions.
/// Our schema is a union of both versions, so objects stored under the old one lose nothing.
fn with_old_version(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let old = crd.spec.versions.first().cloned().map(|mut version| {
        version.name = "v2beta1".into();
        version.served = false;
        version.storage = false;
        version
    });
    crd.spec.versions.extend(old);
    crd
}

/// Serde fills an absent field with its zero value. The API server should not: it would change stored objects.
fn without_defaults(schema: &mut Schema) {
    let properties = schema.get_mut("properties").and_then(|p| p.as_object_mut());
    for property in properties.into_iter().flat_map(|p| p.values_mut()).filter_map(|p| p.as_object_mut()) {
        property.remove("default");
    }
}
