// SPDX-License-Identifier: Apache-2.0

use bivouac_api::tenant::Role;
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};

use crate::tenant::Tenant;

/// All roles, in the order people list them.
pub const ROLES: [Role; 3] = [Role::Admin, Role::Edit, Role::View];

/// The role as Kubernetes' own cluster roles are called.
fn role_name(role: Role) -> &'static str {
    match role {
        Role::Admin => "admin",
        Role::Edit => "edit",
        Role::View => "view",
    }
}

/// The name of the binding that gives a role to its members.
pub fn name(role: Role) -> String {
    format!("workspace-role-binding-{}", role_name(role))
}

pub fn role_binding(tenant: &Tenant<'_>, role: Role, subjects: &[Subject]) -> RoleBinding {
    RoleBinding {
        metadata: tenant.meta(&name(role)),
        role_ref: cluster_role(role_name(role)),
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
