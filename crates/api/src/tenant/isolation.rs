// SPDX-License-Identifier: Apache-2.0
//! Who may talk to the pods of a workspace, and to whom they may talk.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Network isolation of the workspace's namespace.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.allowedNamespaces) || size(self.allowedNamespaces) == 0 || self.enabled",
    "allowedNamespaces can only be set when network isolation is enabled"
))]
pub struct NetworkIsolation {
    /// Refuse traffic that comes from other namespaces.
    #[serde(default)]
    pub enabled: bool,
    /// Namespaces whose traffic is let in all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(length(min = 1, max = 63), regex(pattern = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)$"))
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub allowed_namespaces: Vec<String>,
    /// Limits on traffic that leaves the namespace. Absent: it may go anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
}

/// Limits on traffic that leaves the namespace. Traffic inside the namespace is always let through.
#[derive(Clone, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "self.enabled || ((!has(self.allowedNamespaces) || size(self.allowedNamespaces) == 0) && (!has(self.allowedCIDRs) || size(self.allowedCIDRs) == 0))",
    "egress.allowedNamespaces and egress.allowedCIDRs can only be set when egress.enabled is true"
))]
pub struct Egress {
    /// Refuse traffic to anything that is not listed here.
    #[serde(default)]
    pub enabled: bool,
    /// Namespaces that the workspace's pods may reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(length(min = 1, max = 63), regex(pattern = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)$"))
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub allowed_namespaces: Vec<String>,
    /// Networks that the workspace's pods may reach, such as `10.20.0.0/16`.
    #[serde(default, rename = "allowedCIDRs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 49)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = ("self.all(c, isCIDR(c))", "every entry of egress.allowedCIDRs must be a network such as 10.20.0.0/16 or fd00::/8"))]
    pub allowed_cidrs: Vec<String>,
    /// Let name lookups through to the cluster's DNS.
    #[serde(default = "yes", rename = "allowDNS")]
    pub allow_dns: bool,
}

impl Default for Egress {
    fn default() -> Self {
        Self { enabled: false, allowed_namespaces: Vec::new(), allowed_cidrs: Vec::new(), allow_dns: yes() }
    }
}

fn yes() -> bool {
    true
}
