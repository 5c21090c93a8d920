// SPDX-License-Identifier: Apache-2.0
//! Istio's security API, `security.istio.io/v1`.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(group = "security.istio.io", version = "v1", kind = "PeerAuthentication", plural = "peerauthentications")]
#[kube(namespaced, schema = "disabled", derive = "PartialEq")]
pub struct PeerAuthenticationSpec {
    pub mtls: MutualTls,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MutualTls {
    /// `STRICT`, `PERMISSIVE` or `DISABLE`.
    pub mode: String,
}

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(group = "security.istio.io", version = "v1", kind = "AuthorizationPolicy", plural = "authorizationpolicies")]
#[kube(namespaced, schema = "disabled", derive = "PartialEq")]
pub struct AuthorizationPolicySpec {
    /// `ALLOW` or `DENY`.
    pub action: String,
    pub rules: Vec<Rule>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    pub from: Vec<From>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct From {
    pub source: Source,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    pub namespaces: Vec<String>,
}
