// SPDX-License-Identifier: Apache-2.0

use k8s_openapi::{
    api::networking::v1::{
        IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
        NetworkPolicyPort, NetworkPolicySpec,
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};

use super::NETWORK_POLICY;
use crate::tenant::{Egress, Isolation, Tenant};

/// Where cluster DNS lives on every common distribution.
const DNS_NAMESPACE: &str = "kube-system";
/// Sidecars fetch their configuration here.
const MESH_NAMESPACE: &str = "istio-system";

/// Lets pods of the namespace talk to each other, lets in the allowed namespaces, and optionally closes the way out.
pub fn network_policy(tenant: &Tenant<'_>, isolation: &Isolation<'_>, mesh: bool) -> NetworkPolicy {
    let mut ingress = vec![from(own_pods())];
    ingress.extend(isolation.from_namespaces.iter().map(|name| from(pods_of(name))));
    let mut policy_types = vec!["Ingress".to_owned()];
    if isolation.egress.is_some() {
        policy_types.push("Egress".to_owned());
    }
    NetworkPolicy {
        metadata: tenant.meta(NETWORK_POLICY),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector::default()),
            policy_types: Some(policy_types),
            ingress: Some(ingress),
            egress: isolation.egress.as_ref().map(|egress| ways_out(egress, mesh)),
        }),
    }
}

fn ways_out(egress: &Egress<'_>, mesh: bool) -> Vec<NetworkPolicyEgressRule> {
    let to = |peer| NetworkPolicyEgressRule { to: Some(vec![peer]), ports: None };
    let mut rules = vec![to(own_pods())];
    if egress.dns {
        let ports = ["UDP", "TCP"].map(|protocol| NetworkPolicyPort {
            protocol: Some(protocol.to_owned()),
            port: Some(IntOrString::Int(53)),
            end_port: None,
        });
        rules.push(NetworkPolicyEgressRule { to: Some(vec![pods_of(DNS_NAMESPACE)]), ports: Some(ports.to_vec()) });
    }
    if mesh {
        rules.push(to(pods_of(MESH_NAMESPACE)));
    }
    rules.extend(egress.namespaces.iter().map(|name| to(pods_of(name))));
    rules.extend(egress.cidrs.iter().map(|cidr| {
        let block = IPBlock { cidr: cidr.clone(), except: None };
        to(NetworkPolicyPeer { ip_block: Some(block), ..NetworkPolicyPeer::default() })
    }));
    rules
}

fn from(peer: NetworkPolicyPeer) -> NetworkPolicyIngressRule {
    NetworkPolicyIngressRule { from: Some(vec![peer]), ports: None }
}

fn own_pods() -> NetworkPolicyPeer {
    NetworkPolicyPeer { pod_selector: Some(LabelSelector::default()), ..NetworkPolicyPeer::default() }
}

fn pods_of(namespace: &str) -> NetworkPolicyPeer {
    let by_name = [("kubernetes.io/metadata.name".to_owned(), namespace.to_owned())];
    let selector = LabelSelector { match_labels: Some(by_name.into()), match_expressions: None };
    NetworkPolicyPeer { namespace_selector: Some(selector), ..NetworkPolicyPeer::default() }
}
