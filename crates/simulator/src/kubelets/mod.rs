// SPDX-License-Identifier: Apache-2.0
//! The kubelets of the simulated nodes: what pods do there, as their annotations say ([`script`]). Containers wait for
//! what they mount ([`mounts`]), and brokers of Flux for each other ([`brokers`]).
//!
//! Every state follows from the last one and the time, so a kubelet remembers nothing.

mod addresses;
mod admit;
mod brokers;
mod conditions;
mod configuration;
mod container;
mod logs;
mod mounts;
mod node;
mod pod;
mod script;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{HostIP, Node, Pod, PodIP, PodStatus},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use self::container::{Told, after, started_at};
pub use self::{
    logs::logs,
    node::{LEASES, is_simulated, missed_at},
};
use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    shelf::Key,
    workload::{node_of, phase},
};

/// Asked to stop, and did.
const STOPPED: i32 = 143;
/// Did not stop in time.
const KILLED: i32 = 137;

#[derive(Debug)]
pub struct Kubelets;

impl Controller for Kubelets {
    fn name(&self) -> &'static str {
        "kubelet"
    }

    /// Keys are nodes, which have no namespace, and pods, which have one.
    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        match object {
            Object::Pod(pod) if node_of(pod).is_some() => {
                brokers::concerned(pod, view).into_iter().chain([Key::of(&pod.metadata)]).collect()
            }
            Object::ConfigMap(map) => waiting_in(&map.metadata, view),
            Object::Secret(secret) => waiting_in(&secret.metadata, view),
            Object::Lease(lease) if lease.metadata.namespace.as_deref() == Some(LEASES) => {
                vec![Key::bare(lease.metadata.name.clone().unwrap_or_default())]
            }
            Object::Node(node) => {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                let pods = view.pods_on(name).map(|pod| Key::of(&pod.metadata));
                pods.chain([Key::of(&node.metadata)]).collect()
            }
            _ => Vec::new(),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        if key.namespace.is_empty() {
            let node = view.nodes.get(key).filter(|node| is_simulated(node));
            return node.map(|node| node::plan(node, view, moment.now)).unwrap_or_default();
        }
        let Some(pod) = view.pods.get(key) else { return Plan::default() };
        let node = node_of(pod).and_then(|name| view.nodes.get(&Key::bare(name)));
        // A node that does not have its capacity yet has not begun.
        let works = |node: &&Arc<Node>| {
            let begun = node.status.as_ref().is_some_and(|status| status.allocatable.is_some());
            is_simulated(node) && !node::is_dead(node) && begun
        };
        match node.filter(works) {
            Some(node) => look_after(pod, node, view, moment.now),
            None => Plan::default(),
        }
    }
}

/// The pods that may wait for something to mount.
fn waiting_in(meta: &ObjectMeta, view: &View) -> Vec<Key> {
    let pods = view.pods.in_namespace(meta.namespace.as_deref().unwrap_or_default());
    pods.filter(|pod| mounts::waits(pod)).map(|pod| Key::of(&pod.metadata)).collect()
}

fn look_after(pod: &Pod, node: &Node, view: &View, now: Timestamp) -> Plan {
    let over = matches!(phase(pod), "Succeeded" | "Failed");
    match pod.metadata.deletion_timestamp.is_some() {
        true => stop(pod, over, now),
        false if over => Plan::default(),
        false => go_on(pod, node, view, now),
    }
}

fn go_on(pod: &Pod, node: &Node, view: &View, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let taken = pod.status.as_ref().is_some_and(|status| status.start_time.is_some());
    if !taken && let Some((reason, message)) = admit::refusal(pod, node, view) {
        let known = pod.status.clone().unwrap_or_default();
        let (phase, reason) = (Some("Failed".to_owned()), Some(reason));
        let status = PodStatus { phase, reason, message: Some(message), ..known };
        plan.status(&Pod { status: Some(status), ..pod.clone() });
        return plan;
    }
    let mut life = pod::live(pod, view, now);
    give_addresses(&mut life, pod, node, view);
    if pod.status.as_ref() != Some(&life.status) {
        plan.status(&Pod { status: Some(life.status), ..pod.clone() });
    }
    tell(&mut plan, pod, life.told);
    life.at.into_iter().for_each(|at| plan.again_at(at));
    plan
}

fn tell(plan: &mut Plan, pod: &Pod, told: Vec<Told>) {
    for (normal, reason, note) in told {
        if normal {
            plan.event(pod, reason, note);
        } else {
            plan.warning(pod, reason, note);
        }
    }
}

fn give_addresses(life: &mut pod::Life, pod: &Pod, node: &Node, view: &View) {
    let host = addresses::of_node(node);
    life.status.host_ip = Some(host.clone());
    life.status.host_ips = Some(vec![HostIP { ip: host.clone() }]);
    if life.status.pod_ip.is_none() && life.has_begun() {
        let shares = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let ip = if shares { Some(host) } else { addresses::for_pod(node, view) };
        life.status.pod_ips = ip.clone().map(|ip| vec![PodIP { ip }]);
        life.status.pod_ip = ip;
    }
}

/// Lets the containers stop for as long as they need and may, then lets the pod go.
fn stop(pod: &Pod, over: bool, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let grace = pod.metadata.deletion_grace_period_seconds.and_then(|grace| u64::try_from(grace).ok());
    let grace = Duration::from_secs(grace.unwrap_or_default());
    let latest = pod.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
    let asked = latest.checked_sub(grace).unwrap_or(latest);
    let (needed, status) = (script::stop(pod), pod.status.clone().unwrap_or_default());
    let runs = status.container_statuses.iter().flatten().any(|one| started_at(one).is_some());
    let end = if runs { after(asked, needed.min(grace)) } else { asked };
    if !over && end > now {
        plan.again_at(end);
        return plan;
    }
    if !over {
        for one in status.container_statuses.iter().flatten().filter(|one| started_at(one).is_some()) {
            plan.event(pod, "Killing", format!("Stopping container {}", one.name));
        }
        let mut status = status;
        pod::end_all(&mut status, if needed > grace { KILLED } else { STOPPED }, now);
        status.phase = Some("Failed".to_owned());
        conditions::update(pod, &mut status, false, now);
        plan.status(&Pod { status: Some(status), ..pod.clone() });
    }
    // Somebody else holds it back: it is stopped, and that has been said.
    let held = pod.metadata.finalizers.iter().flatten().count() > 0;
    if !(over && held && grace.is_zero()) {
        plan.remove(pod);
    }
    plan
}
