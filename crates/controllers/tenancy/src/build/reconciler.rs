// SPDX-License-Identifier: Apache-2.0
//! The account under which Flux works inside the namespace, and nowhere else.

use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{RoleBinding, Subject},
};

use super::{RECONCILER, role_binding::cluster_role};
use crate::tenant::Tenant;

pub fn reconciler_account(tenant: &Tenant<'_>) -> ServiceAccount {
    ServiceAccount { metadata: tenant.meta(RECONCILER), ..ServiceAccount::default() }
}

pub fn reconciler_binding(tenant: &Tenant<'_>) -> RoleBinding {
    let account = Subject {
        kind: "ServiceAccount".to_owned(),
        api_group: None,
        name: RECONCILER.to_owned(),
        namespace: Some(tenant.namespace.clone()),
    };
    RoleBinding { metadata: tenant.meta(RECONCILER), role_ref: cluster_role("admin"), subjects: Some(vec![account]) }
}
