// SPDX-License-Identifier: Apache-2.0
//! Services of type LoadBalancer get an address from a range that is kept for examples.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, LoadBalancerStatus, Service, ServiceStatus};

use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    shelf::Key,
};

const RANGE: &str = "198.51.100";

#[derive(Debug)]
pub struct LoadBalancers;

impl Controller for LoadBalancers {
    fn name(&self) -> &'static str {
        "service-controller"
    }

    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        let Object::Service(service) = object else { return Vec::new() };
        let mut keys = vec![Key::of(&service.metadata)];
        // One that goes makes room for those that wait.
        if view.services.get(&Key::of(&service.metadata)).is_none() {
            let waiting = view.services.iter().filter(|one| is_wanted(one) && address(one).is_none());
            keys.extend(waiting.map(|one| Key::of(&one.metadata)));
        }
        keys
    }

    fn plan(&mut self, key: &Key, view: &View, _: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let Some(service) = view.services.get(key) else { return plan };
        let given = match (is_wanted(service), address(service)) {
            (true, None) => free(view),
            (false, Some(_)) => None,
            _ => return plan,
        };
        let told = given.as_ref().map(|ip| format!("Ensured load balancer with address {ip}"));
        if given.is_none() && is_wanted(service) {
            plan.warning(&**service, "SyncLoadBalancerFailed", "all addresses are taken");
            return plan;
        }
        let known = service.status.clone().unwrap_or_default();
        let ingress = given.map(|ip| {
            let mode = Some("VIP".to_owned());
            vec![LoadBalancerIngress { ip: Some(ip), ip_mode: mode, ..LoadBalancerIngress::default() }]
        });
        let status = ServiceStatus { load_balancer: Some(LoadBalancerStatus { ingress }), ..known };
        plan.status(&Service { status: Some(status), ..Service::clone(service) });
        if let Some(told) = told {
            plan.event(&**service, "EnsuredLoadBalancer", told);
        }
        plan
    }
}

fn is_wanted(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
        && spec.is_some_and(|spec| spec.load_balancer_class.is_none())
        && service.metadata.deletion_timestamp.is_none()
}

fn address(service: &Service) -> Option<&str> {
    service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?.first()?.ip.as_deref()
}

/// The lowest address that nobody has.
fn free(view: &View) -> Option<String> {
    let taken: BTreeSet<_> = view.services.iter().filter_map(|service| address(service)).collect();
    (1..255).map(|last| format!("{RANGE}.{last}")).find(|ip| !taken.contains(ip.as_str()))
}
