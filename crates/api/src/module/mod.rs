// SPDX-License-Identifier: Apache-2.0
//! Group `module.otterscale.io`: add-ons installed from templates, second generation.
//!
//! Against the first generation: templates hold the Flux CD specs directly, and a module may wait for an approval before
//! it follows its template. An earlier form named classes in place of templates; its modules are still accepted.

mod earlier;
mod installed;
mod template;

pub use earlier::{HelmState, InventoryEntry, KustomizationState};
pub use installed::{Module, ModuleSpec, ModuleStatus};
pub use template::{ModuleTemplate, ModuleTemplateSpec};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// The CRDs of this group, as derived; `crate::crds` finishes them.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![Module::crd(), ModuleTemplate::crd()]
}
