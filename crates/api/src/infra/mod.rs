// SPDX-License-Identifier: Apache-2.0
//! Group `infra.exalsius.ai`: colonies of clusters.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The CRDs of this group, as derived; `crate::crds` finishes them.
pub fn crds() -> Vec<CustomResourceDefinition> {
    Vec::new()
}
