// SPDX-License-Identifier: Apache-2.0
//! What an object uses of a quota.

use std::collections::BTreeSet;

use bivouac_core::{Format, Quantity};
use serde_json::Value;

use super::super::resources::{self, Amounts};
use crate::{
    object::{Object, text},
    status::qualified,
};

const STORAGE: &str = "requests.storage";
const CLAIMS: &str = "persistentvolumeclaims";
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";

/// What a container has to say where a quota asks for it.
const REQUIRED: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Kinds that counted by their bare name before every kind could be counted.
const OLD_COUNTS: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];

fn number(count: usize) -> Quantity {
    Quantity::from_units(i64::try_from(count).unwrap_or(i64::MAX), Format::Decimal)
}

/// The usage of one object, by the names that quotas know.
pub fn of(group: &str, plural: &str, object: &Value) -> Amounts {
    let mut usage = Amounts::from([(format!("count/{}", qualified(group, plural)), number(1))]);
    match (group, plural) {
        ("", "pods") if !matches!(text(object, "/status/phase"), "Failed" | "Succeeded") => {
            usage.extend(compute(&resources::requests(object), &resources::limits(object)));
        }
        ("", "services") => usage.extend(service(object)),
        ("", CLAIMS) => usage.extend(claim(object)),
        ("", plural) if OLD_COUNTS.contains(&plural) => {
            usage.insert(plural.to_owned(), number(1));
        }
        _ => {}
    }
    usage
}

/// What requests and limits are in a quota.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), number(1))]);
    for (name, amount) in requests {
        let basic = COMPUTE.contains(&name.as_str());
        if basic || name.starts_with("hugepages-") {
            usage.insert(name.clone(), *amount);
        }
        if basic || name.starts_with("hugepages-") || is_extended(name) {
            usage.insert(format!("requests.{name}"), *amount);
        }
    }
    for name in COMPUTE {
        usage.extend(limits.get(name).map(|amount| (format!("limits.{name}"), *amount)));
    }
    usage
}

/// Such as `nvidia.com/gpu`.
fn is_extended(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io") && !domain.starts_with("requests."))
}

fn service(service: &Value) -> Amounts {
    let ports = service.at("/spec/ports").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let explicit =
        || ports.iter().filter(|port| port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() != 0).count();
    let allocates = service.at("/spec/allocateLoadBalancerNodePorts").and_then(Value::as_bool).unwrap_or(true);
    let (balancers, node_ports) = match text(service, "/spec/type") {
        "NodePort" => (0, ports.len()),
        "LoadBalancer" if allocates => (1, ports.len()),
        "LoadBalancer" => (1, explicit()),
        _ => (0, 0),
    };
    let counts = [("services", 1), ("services.loadbalancers", balancers), ("services.nodeports", node_ports)];
    counts.into_iter().map(|(name, count)| (name.to_owned(), number(count))).collect()
}

fn claim(claim: &Value) -> Amounts {
    let mut usage = Amounts::from([(CLAIMS.to_owned(), number(1))]);
    let size = resources::at(claim, "/spec/resources/requests").remove("storage");
    usage.extend(size.map(|size| (STORAGE.to_owned(), size)));
    let class = text(claim, "/spec/storageClassName");
    if !class.is_empty() {
        let of_class: Amounts =
            usage.iter().map(|(name, amount)| (format!("{class}{OF_CLASS}{name}"), *amount)).collect();
        usage.extend(of_class);
    }
    usage
}

/// Which of the limited resources are about objects of this kind.
pub fn about(group: &str, plural: &str, hard: &Amounts) -> BTreeSet<String> {
    let count = format!("count/{}", qualified(group, plural));
    let fits = |name: &str| match (group, plural) {
        _ if name == count => true,
        ("", "pods") => {
            let bare = name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
            name == "pods"
                || COMPUTE.contains(&bare)
                || bare.starts_with("hugepages-")
                || (name.starts_with("requests.") && is_extended(bare))
        }
        ("", "services") => ["services", "services.nodeports", "services.loadbalancers"].contains(&name),
        ("", CLAIMS) => {
            let bare = name.split_once(OF_CLASS).map_or(name, |(_, bare)| bare);
            [CLAIMS, STORAGE].contains(&bare)
        }
        ("", plural) => OLD_COUNTS.contains(&plural) && name == plural,
        _ => false,
    };
    hard.keys().filter(|name| fits(name)).cloned().collect()
}

/// What the containers of a pod leave open although the quota limits it.
pub fn missing(pod: &Value, limited: &BTreeSet<String>) -> Option<String> {
    let containers = ["containers", "initContainers"].into_iter();
    let containers = containers.filter_map(|kind| pod.at(&format!("/spec/{kind}"))?.as_array()).flatten();
    let said: Vec<(&str, Amounts)> = containers
        .map(|container| {
            let at = |field: &str| resources::at(container, &format!("/resources/{field}"));
            (text(container, "/name"), compute(&at("requests"), &at("limits")))
        })
        .collect();
    let whole = compute(&resources::at(pod, "/spec/resources/requests"), &resources::at(pod, "/spec/resources/limits"));
    let mut missing = Vec::new();
    for name in limited.iter().filter(|name| REQUIRED.contains(&name.as_str()) && !whole.contains_key(*name)) {
        let who: BTreeSet<&str> =
            said.iter().filter(|(_, usage)| !usage.contains_key(name)).map(|(who, _)| *who).collect();
        if !who.is_empty() {
            missing.push(format!("{name} for: {}", who.into_iter().collect::<Vec<_>>().join(",")));
        }
    }
    (!missing.is_empty()).then(|| format!("must specify {}", missing.join("; ")))
}
