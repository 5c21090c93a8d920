// SPDX-License-Identifier: Apache-2.0
//! EndpointSlices: the pods behind a Service, in parts of a bounded size.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{Pod, Service},
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::{
    controller::{Controller, Moment, Plan},
    endpoints::{
        CHANGED, HEADLESS, address, hostname, is_behind, is_headless, port_of, reference, selects_pods, services,
        tolerates_unready,
    },
    kinds::{Object, View},
    request::Propagation,
    shelf::Key,
    workload::{controller_of, generate_name, is_ready, node_of, owned, time},
};

const SERVICE: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const US: &str = "endpointslice-controller.k8s.io";
const ZONE: &str = "topology.kubernetes.io/zone";
const MOST_IN_ONE: usize = 100;

#[derive(Debug)]
pub struct EndpointSlices;

/// Ports as they sort, and the endpoints that have them.
type Groups = BTreeMap<Vec<(Option<String>, Option<i32>)>, (Vec<EndpointPort>, Vec<Endpoint>)>;

impl Controller for EndpointSlices {
    fn name(&self) -> &'static str {
        "endpoint-slice-controller"
    }

    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        match object {
            Object::EndpointSlice(slice) => {
                let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
                controller_of(&slice.metadata).map(|owner| Key::new(namespace, &owner.name)).into_iter().collect()
            }
            // The node of a pod may be seen only after the pod.
            Object::Node(node) => {
                let pods = view.pods_on(node.metadata.name.as_deref().unwrap_or_default());
                pods.flat_map(|pod| services(&Object::Pod(pod.clone()), view)).collect()
            }
            object => services(object, view),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let found = view.services.get(key).filter(|service| selects_pods(service));
        let Some(service) = found.filter(|service| service.metadata.deletion_timestamp.is_none()) else { return plan };
        let uid = service.metadata.uid.as_deref().unwrap_or_default();
        let ours: Vec<_> = view.endpoint_slices.owned_by(uid).filter(|slice| is_ours(slice)).cloned().collect();
        let families = service.spec.as_ref().and_then(|spec| spec.ip_families.clone());
        let families = families.unwrap_or_else(|| vec!["IPv4".to_owned()]);
        for family in &families {
            let own: Vec<_> = ours.iter().filter(|slice| slice.address_type == *family).cloned().collect();
            let mut strays = Vec::new();
            reconcile(&mut plan, service, family, &own, groups(service, view, family, &mut strays), moment);
            if !strays.is_empty() {
                let why = if strays.len() == 1 { strays.concat() } else { format!("[{}]", strays.join(", ")) };
                let note = format!("Error updating Endpoint Slices for Service {key}: {why}");
                plan.warning(&**service, "FailedToUpdateEndpointSlices", note);
            }
        }
        for slice in ours.iter().filter(|slice| !families.contains(&slice.address_type)) {
            plan.delete(&**slice, Propagation::Background);
        }
        plan
    }
}

fn is_ours(slice: &EndpointSlice) -> bool {
    let labels = slice.metadata.labels.as_ref();
    labels.and_then(|all| all.get(MANAGED_BY)).is_some_and(|who| who == US)
        && slice.metadata.deletion_timestamp.is_none()
}

/// Pods on nodes that nobody knows are left out, and told.
fn groups(service: &Service, view: &View, family: &str, strays: &mut Vec<String>) -> Groups {
    let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    let mut groups = Groups::new();
    for pod in view.pods.in_namespace(namespace).filter(|pod| is_behind(service, pod)) {
        let Some(ip) = address(pod, family == "IPv6") else { continue };
        let lost = |node: &&str| view.nodes.get(&Key::bare(*node)).is_none() && !tolerates_unready(service);
        if let Some(node) = node_of(pod).filter(lost) {
            let (pod, service) = (pod.metadata.name.as_deref().unwrap_or_default(), Key::of(&service.metadata));
            strays.push(format!("skipping Pod {pod} for Service {service}: Node {node} Not Found"));
            continue;
        }
        let ports = ports(service, pod);
        let key = ports.iter().map(|port| (port.name.clone(), port.port)).collect();
        let group = groups.entry(key).or_insert_with(|| (ports, Vec::new()));
        group.1.push(endpoint(service, pod, ip, view));
    }
    groups
}

fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let wanted = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let resolved = wanted.iter().filter_map(|port| {
        Some(EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(port_of(pod, port)?),
            protocol: port.protocol.clone(),
            app_protocol: port.app_protocol.clone(),
        })
    });
    resolved.collect()
}

fn endpoint(service: &Service, pod: &Pod, ip: &str, view: &View) -> Endpoint {
    let (serving, terminating) = (is_ready(pod), pod.metadata.deletion_timestamp.is_some());
    let node = node_of(pod).map(ToOwned::to_owned);
    let labels = node.as_ref().and_then(|name| view.nodes.get(&Key::bare(name))?.metadata.labels.clone());
    Endpoint {
        addresses: vec![ip.to_owned()],
        conditions: Some(EndpointConditions {
            ready: Some(tolerates_unready(service) || serving && !terminating),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: hostname(service, pod),
        zone: labels.and_then(|labels| labels.get(ZONE).cloned()),
        node_name: node,
        target_ref: Some(reference(pod)),
        ..Endpoint::default()
    }
}

/// Writes what differs. Slices that exist are used again.
fn reconcile(
    plan: &mut Plan,
    service: &Service,
    family: &str,
    known: &[Arc<EndpointSlice>],
    mut groups: Groups,
    moment: &Moment<'_>,
) {
    if groups.is_empty() {
        // A Service without pods has one empty slice, so that its watchers know that it was looked at.
        groups.insert(Vec::new(), (Vec::new(), Vec::new()));
    }
    let labels = labels(service);
    let mut unused: Vec<_> = known.to_vec();
    for (ports, endpoints) in groups.into_values() {
        let mut parts: Vec<_> = endpoints.chunks(MOST_IN_ONE).map(<[_]>::to_vec).collect();
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        for part in parts {
            let mut wanted = EndpointSlice {
                address_type: family.to_owned(),
                endpoints: Some(part).filter(|part| !part.is_empty()),
                ports: Some(ports.clone()).filter(|ports| !ports.is_empty()),
                metadata: ObjectMeta {
                    generate_name: Some(generate_name(service.metadata.name.as_deref().unwrap_or_default(), "-")),
                    namespace: service.metadata.namespace.clone(),
                    labels: Some(labels.clone()),
                    owner_references: Some(vec![owned(service)]),
                    ..ObjectMeta::default()
                },
            };
            let at = unused.iter().position(|slice| full(&slice.ports) == full(&wanted.ports)).or_else(|| {
                let empty = |slice: &Arc<EndpointSlice>| full(&slice.endpoints).is_empty();
                unused.iter().position(empty)
            });
            let stamp = [(CHANGED.to_owned(), time(moment.now).0.to_string())];
            match at.map(|at| unused.remove(at)) {
                None => {
                    wanted.metadata.annotations = Some(stamp.into());
                    plan.create(&wanted);
                }
                Some(known) => {
                    let same = full(&known.endpoints) == full(&wanted.endpoints)
                        && full(&known.ports) == full(&wanted.ports)
                        && known.metadata.labels == wanted.metadata.labels;
                    if !same {
                        wanted.metadata = ObjectMeta { labels: Some(labels.clone()), ..known.metadata.clone() };
                        wanted.metadata.annotations.get_or_insert_default().extend(stamp);
                        plan.update(&wanted);
                    }
                }
            }
        }
    }
    unused.iter().for_each(|slice| plan.delete(&**slice, Propagation::Background));
}

fn full<T>(list: &Option<Vec<T>>) -> &[T] {
    list.as_deref().unwrap_or_default()
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE.to_owned(), service.metadata.name.clone().unwrap_or_default());
    labels.insert(MANAGED_BY.to_owned(), US.to_owned());
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    } else {
        labels.remove(HEADLESS);
    }
    labels
}
