// SPDX-License-Identifier: Apache-2.0
//! The kinds Bivouac serves, one folder per API group. Types only: no client, no tokio.
// Clippy takes two printer columns of one type for one attribute written twice.
#![allow(clippy::duplicated_attributes)]

pub mod addons;
pub mod akash;
pub mod crd;
pub mod flux;
pub mod infra;
pub mod module;
pub mod reference;
pub mod resource_ref;
pub mod tenant;
pub mod tgp;
pub mod workspaces;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Every CRD of the suite, finished for installation, in a stable order.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let groups = [
        addons::crds(),
        akash::crds(),
        flux::crds(),
        infra::crds(),
        module::crds(),
        tenant::crds(),
        tgp::crds(),
        workspaces::crds(),
    ];
    groups.into_iter().flatten().map(crd::finish).collect()
}
