// SPDX-License-Identifier: Apache-2.0
//! Group `flux-framework.org`: HPC clusters made of pods.
//!
//! As in the Go types of upstream, an empty text, a zero or `false` means "not set" wherever there is no default, and is
//! left out when written. Lists and maps may come as null.

mod broker;
mod container;
mod minicluster;
mod pod;
mod volume;

pub use broker::{BurstCluster, Bursting, Flux, FluxContainer, LeadBroker, Scheduler};
pub use container::{Commands, Container, LifeCycle, SecretKey};
pub use minicluster::{Archive, Logging, MiniCluster, MiniClusterSpec, MiniClusterStatus, Network};
pub use pod::Pod;
pub use volume::Volume;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde::{Deserialize, Deserializer};

/// The CRDs of this group, as derived; `crate::crds` finishes them.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![MiniCluster::crd()]
}

/// For `skip_serializing_if`.
fn unset<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// For `deserialize_with`: Go clients write an empty list or map as null.
fn or_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
