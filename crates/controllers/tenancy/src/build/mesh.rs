// SPDX-License-Identifier: Apache-2.0
//! Isolation inside an Istio mesh, on top of the NetworkPolicy.

use bivouac_engines::istio::{
    AuthorizationPolicy, AuthorizationPolicySpec, From, MutualTls, PeerAuthentication, PeerAuthenticationSpec, Rule,
    Source,
};

use super::{AUTHORIZATION_POLICY, PEER_AUTHENTICATION};
use crate::tenant::{Isolation, Tenant};

pub fn peer_authentication(tenant: &Tenant<'_>) -> PeerAuthentication {
    let spec = PeerAuthenticationSpec { mtls: MutualTls { mode: "STRICT".to_owned() } };
    PeerAuthentication { metadata: tenant.meta(PEER_AUTHENTICATION), spec }
}

pub fn authorization_policy(tenant: &Tenant<'_>, isolation: &Isolation<'_>) -> AuthorizationPolicy {
    let mut namespaces = vec![tenant.namespace.clone()];
    namespaces.extend(isolation.from_namespaces.iter().cloned());
    let rule = Rule { from: vec![From { source: Source { namespaces } }] };
    let spec = AuthorizationPolicySpec { action: "ALLOW".to_owned(), rules: vec![rule] };
    AuthorizationPolicy { metadata: tenant.meta(AUTHORIZATION_POLICY), spec }
}
