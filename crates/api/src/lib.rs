// SPDX-License-Identifier: Apache-2.0
//! The kinds Bivouac serves, one folder per API group. Types only: no client, no tokio.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Every CRD of the suite, finished for installation, in a stable order.
pub fn crds() -> Vec<CustomResourceDefinition> {
    Vec::new()
}
