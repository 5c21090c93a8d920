// SPDX-License-Identifier: Apache-2.0

use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use crate::tenant::Tenant;

/// Asks Istio to put its sidecar into every pod.
pub const INJECTION_LABEL: &str = "istio-injection";

pub fn namespace(tenant: &Tenant<'_>, inject_sidecars: bool) -> Namespace {
    let mut labels = tenant.meta("").labels.unwrap_or_default();
    labels.extend(tenant.namespace_labels.clone());
    if inject_sidecars {
        labels.insert(INJECTION_LABEL.to_owned(), "enabled".to_owned());
    }
    let annotations = tenant.namespace_annotations.clone();
    Namespace {
        metadata: ObjectMeta {
            name: Some(tenant.namespace.clone()),
            labels: Some(labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    }
}
