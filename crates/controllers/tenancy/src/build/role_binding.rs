// SPDX-License-Identifier: Apache-2.0

use bivouac_api::tenant::Role;
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};

use crate::tenant::Tenant;

/// The name of the binding that gives a role to its members.
pub fn name(role: Role) -> String {
    format!("workspace-role-binding-{}", role.as_str())
}

pub fn role_binding(tenant: &Tenant<'_>, role: Role, subjects: &[Subject]) -> RoleBinding {
    RoleBinding {
        metadata: tenant.meta(&name(role)),
        role_ref: cluster_role(role.as_str()),
        subjects: Some(subjects.to_vec()),
    }
}

/// One of the cluster roles that Kubernetes itself keeps: admin, edit, view.
pub fn cluster_role(name: &str) -> RoleRef {
    RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: "ClusterRole".to_owned(),
        name: name.to_owned(),
    }
}
