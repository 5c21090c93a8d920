// SPDX-License-Identifier: Apache-2.0
//! Endpoints: the older list of the pods behind a Service, kept for those who still read it.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        EndpointAddress, EndpointPort, EndpointSubset, Endpoints as List, ObjectReference, Pod, Service, ServicePort,
    },
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};

use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    labels,
    request::Propagation,
    shelf::Key,
    workload::{is_ready, node_of, phase, time},
};

pub const CHANGED: &str = "endpoints.kubernetes.io/last-change-trigger-time";
pub const HEADLESS: &str = "service.kubernetes.io/headless";
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

#[derive(Debug)]
pub struct Endpoints;

impl Controller for Endpoints {
    fn name(&self) -> &'static str {
        "endpoint-controller"
    }

    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        match object {
            Object::Endpoints(list) => vec![Key::of(&list.metadata)],
            object => services(object, view),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let known = view.endpoints.get(key);
        let Some(service) = view.services.get(key) else {
            // Lists that somebody else made stay.
            let ours = |list: &List| list.metadata.labels.as_ref().is_some_and(|all| all.contains_key(MANAGED_BY));
            known.filter(|list| ours(list)).into_iter().for_each(|list| plan.delete(&**list, Propagation::Background));
            return plan;
        };
        if !selects_pods(service) {
            return plan;
        }
        let wanted = build(service, view);
        match known {
            None => plan.create(&stamped(wanted, moment)),
            Some(known) if known.subsets == wanted.subsets && known.metadata.labels == wanted.metadata.labels => {}
            Some(known) => {
                let mut changed = stamped(List { subsets: wanted.subsets, ..List::clone(known) }, moment);
                changed.metadata.labels = wanted.metadata.labels;
                plan.update(&changed);
            }
        }
        plan
    }
}

fn stamped(mut list: List, moment: &Moment<'_>) -> List {
    let at = time(moment.now).0.to_string();
    list.metadata.annotations.get_or_insert_default().insert(CHANGED.to_owned(), at);
    list
}

/// The services that an object concerns: itself, or those that select the pod.
pub fn services(object: &Object, view: &View) -> Vec<Key> {
    match object {
        Object::Service(service) => vec![Key::of(&service.metadata)],
        Object::Pod(pod) => {
            let all = view.services.in_namespace(pod.metadata.namespace.as_deref().unwrap_or_default());
            all.filter(|service| is_behind(service, pod)).map(|service| Key::of(&service.metadata)).collect()
        }
        _ => Vec::new(),
    }
}

pub fn selects_pods(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|spec| spec.selector.is_some() && spec.type_.as_deref() != Some("ExternalName"))
}

pub fn is_behind(service: &Service, pod: &Pod) -> bool {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some() && labels::contains(pod.metadata.labels.as_ref(), selector)
}

pub fn is_headless(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()).is_none_or(|ip| matches!(ip, "" | "None"))
}

pub fn tolerates_unready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses) == Some(true)
}

/// The address of a pod that has not stopped, of the family that is asked for.
pub fn address(pod: &Pod, v6: bool) -> Option<&str> {
    let status = pod.status.as_ref().filter(|_| !matches!(phase(pod), "Succeeded" | "Failed"))?;
    status.pod_ips.iter().flatten().map(|one| one.ip.as_str()).find(|ip| ip.contains(':') == v6)
}

/// A pod that has a name in the Service's domain.
pub fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    spec.hostname.clone().filter(|name| !name.is_empty() && spec.subdomain == service.metadata.name)
}

pub fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The number of a Service's port in a pod: ports may be meant by name.
pub fn port_of(pod: &Pod, port: &ServicePort) -> Option<i32> {
    match &port.target_port {
        None => Some(port.port),
        Some(IntOrString::Int(0)) => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let spec = pod.spec.as_ref()?;
            let beside =
                spec.init_containers.iter().flatten().filter(|one| one.restart_policy.as_deref() == Some("Always"));
            let ports = spec.containers.iter().chain(beside).flat_map(|one| one.ports.iter().flatten());
            let protocol = |text: &Option<String>| text.clone().unwrap_or_else(|| "TCP".to_owned());
            let mut named = ports
                .filter(|one| one.name.as_ref() == Some(name) && protocol(&one.protocol) == protocol(&port.protocol));
            named.next().map(|one| one.container_port)
        }
    }
}

fn build(service: &Service, view: &View) -> List {
    let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    let spec = service.spec.clone().unwrap_or_default();
    let v6 = spec.ip_families.as_ref().and_then(|all| all.first()).is_some_and(|first| first == "IPv6");
    // Pods with the same ports share a subset.
    let mut subsets: BTreeMap<Vec<(Option<String>, i32)>, EndpointSubset> = BTreeMap::new();
    for pod in view.pods.in_namespace(namespace).filter(|pod| is_behind(service, pod)) {
        let leaves = pod.metadata.deletion_timestamp.is_some();
        let Some(ip) = address(pod, v6).filter(|_| !leaves || tolerates_unready(service)) else { continue };
        let ports: Vec<EndpointPort> = spec
            .ports
            .iter()
            .flatten()
            .filter_map(|port| {
                Some(EndpointPort {
                    name: port.name.clone().filter(|name| !name.is_empty()),
                    port: port_of(pod, port)?,
                    protocol: port.protocol.clone(),
                    app_protocol: port.app_protocol.clone(),
                })
            })
            .collect();
        if ports.is_empty() && !(is_headless(service) && spec.ports.is_none()) {
            continue;
        }
        let key = ports.iter().map(|port| (port.name.clone(), port.port)).collect();
        let subset = subsets.entry(key).or_default();
        subset.ports = Some(ports).filter(|ports| !ports.is_empty());
        let address = EndpointAddress {
            ip: ip.to_owned(),
            hostname: hostname(service, pod),
            node_name: node_of(pod).map(ToOwned::to_owned),
            target_ref: Some(reference(pod)),
        };
        let ready = tolerates_unready(service) || is_ready(pod);
        let side = if ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
        side.get_or_insert_default().push(address);
    }
    for subset in subsets.values_mut() {
        let sides = subset.addresses.iter_mut().chain(&mut subset.not_ready_addresses);
        sides.for_each(|side| side.sort_by_key(|one| one.ip.parse::<std::net::IpAddr>().ok()));
    }
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.insert(MANAGED_BY.to_owned(), "endpoint-controller".to_owned());
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    List {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        subsets: Some(subsets.into_values().collect::<Vec<_>>()).filter(|all| !all.is_empty()),
    }
}
