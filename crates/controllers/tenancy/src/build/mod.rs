// SPDX-License-Identifier: Apache-2.0
//! The children of a Workspace, one pure function per kind. Names are the Go operator's.

mod config;
mod limit_range;
mod mesh;
mod namespace;
mod network_policy;
mod reconciler;
mod resource_quota;
mod role_binding;

pub use config::config;
pub use limit_range::limit_range;
pub use mesh::{authorization_policy, peer_authentication};
pub use namespace::{INJECTION_LABEL, namespace};
pub use network_policy::network_policy;
pub use reconciler::{reconciler_account, reconciler_binding};
pub use resource_quota::resource_quota;
pub use role_binding::{ROLES, name as role_binding_name, role_binding};

pub const RESOURCE_QUOTA: &str = "workspace-resource-quota";
pub const LIMIT_RANGE: &str = "workspace-limit-range";
pub const NETWORK_POLICY: &str = "workspace-network-policy";
pub const PEER_AUTHENTICATION: &str = "workspace-peer-authentication";
pub const AUTHORIZATION_POLICY: &str = "workspace-authorization-policy";
pub const CONFIG: &str = "workspace-config";
pub const RECONCILER: &str = "workspace-reconciler";
