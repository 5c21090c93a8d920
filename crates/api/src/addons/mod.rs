// SPDX-License-Identifier: Apache-2.0
//! Group `addons.otterscale.io`: add-ons installed from templates, first generation.

mod module;
mod template;

pub use module::{Module, ModuleSpec, ModuleStatus};
pub use template::{
    HelmReleaseTemplate, KustomizationTemplate, ModuleTemplate, ModuleTemplateSpec, ModuleTemplateStatus,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// The CRDs of this group, as derived; `crate::crds` finishes them.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![Module::crd(), ModuleTemplate::crd()]
}
