// SPDX-License-Identifier: Apache-2.0
//! What each object uses, by the names that quotas know.

use std::{collections::BTreeMap, time::Duration};

use bivouac_core::{Format, Quantity};
use jiff::Timestamp;
use k8s_openapi::{
    Resource,
    api::core::v1::{Container, PersistentVolumeClaim, Pod, ResourceQuota, Service},
    apimachinery::pkg::api::resource::Quantity as Text,
};

use crate::{kinds::View, shelf::Shelf, workload::phase};

pub type Amounts = BTreeMap<String, Quantity>;

const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

fn number(count: usize) -> Quantity {
    Quantity::from_units(i64::try_from(count).unwrap_or(i64::MAX), Format::Decimal)
}

fn add(total: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        let sum = total.get(&name).copied().unwrap_or(number(0)).checked_add(amount).unwrap_or(amount);
        total.insert(name, sum);
    }
}

/// Whether the simulation sees all objects that a name counts.
pub fn is_known(name: &str) -> bool {
    const SEEN: [&str; 16] = [
        "pods",
        "services",
        "configmaps",
        "secrets",
        "persistentvolumeclaims",
        "resourcequotas",
        "serviceaccounts",
        "endpoints",
        "jobs.batch",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "daemonsets.apps",
        "controllerrevisions.apps",
        "leases.coordination.k8s.io",
        "poddisruptionbudgets.policy",
    ];
    match name.strip_prefix("count/") {
        Some(kind) => SEEN.contains(&kind),
        None => name != "replicationcontrollers",
    }
}

pub fn of_namespace(quota: &ResourceQuota, view: &View, now: Timestamp) -> Amounts {
    let namespace = quota.metadata.namespace.as_deref().unwrap_or_default();
    let mut total = Amounts::new();
    let scoped = is_scoped(quota);
    for pod in view.pods.in_namespace(namespace).filter(|pod| in_scope(quota, pod)) {
        add(&mut total, of_pod(pod, now));
    }
    if scoped {
        return total;
    }
    for service in view.services.in_namespace(namespace) {
        add(&mut total, of_service(service));
    }
    for claim in view.volume_claims.in_namespace(namespace) {
        add(&mut total, of_claim(claim));
    }
    let plain = [
        ("configmaps", view.config_maps.in_namespace(namespace).count()),
        ("secrets", view.secrets.in_namespace(namespace).count()),
        ("resourcequotas", view.quotas.in_namespace(namespace).count()),
    ];
    total.extend(plain.into_iter().map(|(name, count)| (name.to_owned(), number(count))));
    count(&mut total, &view.pods, namespace);
    count(&mut total, &view.services, namespace);
    count(&mut total, &view.config_maps, namespace);
    count(&mut total, &view.secrets, namespace);
    count(&mut total, &view.volume_claims, namespace);
    count(&mut total, &view.quotas, namespace);
    count(&mut total, &view.service_accounts, namespace);
    count(&mut total, &view.endpoints, namespace);
    count(&mut total, &view.jobs, namespace);
    count(&mut total, &view.deployments, namespace);
    count(&mut total, &view.replica_sets, namespace);
    count(&mut total, &view.stateful_sets, namespace);
    count(&mut total, &view.daemon_sets, namespace);
    count(&mut total, &view.revisions, namespace);
    count(&mut total, &view.leases, namespace);
    count(&mut total, &view.disruption_budgets, namespace);
    total
}

fn count<K: crate::shelf::Kept + Resource>(total: &mut Amounts, shelf: &Shelf<K>, namespace: &str) {
    let dot = if K::GROUP.is_empty() { "" } else { "." };
    let name = format!("count/{}{dot}{}", K::URL_PATH_SEGMENT, K::GROUP);
    total.insert(name, number(shelf.in_namespace(namespace).count()));
}

/// Stopped pods use nothing, nor do those that should be gone by now.
fn of_pod(pod: &Pod, now: Timestamp) -> Amounts {
    let gone = pod.metadata.deletion_timestamp.as_ref().is_some_and(|at| {
        let grace = u64::try_from(pod.metadata.deletion_grace_period_seconds.unwrap_or_default()).unwrap_or_default();
        at.0.checked_add(Duration::from_secs(grace)).is_ok_and(|end| end < now)
    });
    if gone || matches!(phase(pod), "Succeeded" | "Failed") {
        return Amounts::new();
    }
    let mut usage = Amounts::from([("pods".to_owned(), number(1))]);
    for (name, amount) in needs(pod, |container| container.resources.as_ref()?.requests.as_ref()) {
        let basic = COMPUTE.contains(&name.as_str()) || name.starts_with("hugepages-");
        let extended = name.split_once('/').is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io"));
        if basic {
            usage.insert(name.clone(), amount);
        }
        if basic || extended {
            usage.insert(format!("requests.{name}"), amount);
        }
    }
    for (name, amount) in needs(pod, |container| container.resources.as_ref()?.limits.as_ref()) {
        if COMPUTE.contains(&name.as_str()) {
            usage.insert(format!("limits.{name}"), amount);
        }
    }
    usage
}

/// Containers run together; those before them run one by one, but for those that stay.
fn needs(pod: &Pod, of: impl Fn(&Container) -> Option<&BTreeMap<String, Text>>) -> Amounts {
    let read = |container: &Container| -> Amounts {
        let all = of(container).into_iter().flatten();
        all.filter_map(|(name, text)| Some((name.clone(), text.0.parse().ok()?))).collect()
    };
    let Some(spec) = pod.spec.as_ref() else { return Amounts::new() };
    let (mut total, mut peak, mut staying) = (Amounts::new(), Amounts::new(), Amounts::new());
    spec.containers.iter().for_each(|container| add(&mut total, read(container)));
    for container in spec.init_containers.iter().flatten() {
        let mut then = staying.clone();
        add(&mut then, read(container));
        if container.restart_policy.as_deref() == Some("Always") {
            staying.clone_from(&then);
        }
        for (name, amount) in then {
            let most = peak.get(&name).copied().map_or(amount, |known| known.max(amount));
            peak.insert(name, most);
        }
    }
    add(&mut total, staying);
    for (name, amount) in peak {
        let most = total.get(&name).copied().map_or(amount, |known| known.max(amount));
        total.insert(name, most);
    }
    for (name, text) in spec.overhead.iter().flatten() {
        if let (Some(amount), Ok(more)) = (total.get(name).copied(), text.0.parse::<Quantity>()) {
            total.insert(name.clone(), amount.checked_add(more).unwrap_or(amount));
        }
    }
    total
}

fn of_service(service: &Service) -> Amounts {
    let Some(spec) = service.spec.as_ref() else { return Amounts::new() };
    let ports = spec.ports.as_deref().unwrap_or_default();
    let explicit = ports.iter().filter(|port| port.node_port.unwrap_or_default() != 0).count();
    let (balancers, node_ports) = match spec.type_.as_deref() {
        Some("NodePort") => (0, ports.len()),
        Some("LoadBalancer") if spec.allocate_load_balancer_node_ports == Some(false) => (1, explicit),
        Some("LoadBalancer") => (1, ports.len()),
        _ => (0, 0),
    };
    [("services", 1), ("services.loadbalancers", balancers), ("services.nodeports", node_ports)]
        .map(|(name, count)| (name.to_owned(), number(count)))
        .into()
}

fn of_claim(claim: &PersistentVolumeClaim) -> Amounts {
    let spec = claim.spec.as_ref();
    let asked = spec.and_then(|spec| spec.resources.as_ref()?.requests.as_ref()?.get("storage")?.0.parse().ok());
    let class = spec.and_then(|spec| spec.storage_class_name.as_deref()).unwrap_or_default();
    let mut usage = Amounts::from([("persistentvolumeclaims".to_owned(), number(1))]);
    usage.extend(asked.map(|asked| ("requests.storage".to_owned(), asked)));
    if !class.is_empty() {
        let of_class = |name: &str| format!("{class}.storageclass.storage.k8s.io/{name}");
        let own: Vec<_> = usage.iter().map(|(name, amount)| (of_class(name), *amount)).collect();
        usage.extend(own);
    }
    usage
}

fn is_scoped(quota: &ResourceQuota) -> bool {
    let spec = quota.spec.clone().unwrap_or_default();
    spec.scopes.is_some_and(|scopes| !scopes.is_empty())
        || spec.scope_selector.is_some_and(|all| all.match_expressions.is_some_and(|all| !all.is_empty()))
}

fn in_scope(quota: &ResourceQuota, pod: &Pod) -> bool {
    let Some(spec) = quota.spec.as_ref() else { return true };
    let selected = spec.scope_selector.iter().flat_map(|selector| selector.match_expressions.iter().flatten());
    spec.scopes.iter().flatten().all(|scope| fits(scope, "Exists", &[], pod))
        && selected
            .into_iter()
            .all(|one| fits(&one.scope_name, &one.operator, one.values.as_deref().unwrap_or_default(), pod))
}

fn fits(scope: &str, operator: &str, values: &[String], pod: &Pod) -> bool {
    let spec = pod.spec.clone().unwrap_or_default();
    let best_effort = || {
        let asks =
            |amounts: Amounts| COMPUTE.iter().take(2).any(|name| amounts.get(*name).is_some_and(|one| !one.is_zero()));
        !asks(needs(pod, |container| container.resources.as_ref()?.requests.as_ref()))
            && !asks(needs(pod, |container| container.resources.as_ref()?.limits.as_ref()))
    };
    match scope {
        "Terminating" => spec.active_deadline_seconds.is_some(),
        "NotTerminating" => spec.active_deadline_seconds.is_none(),
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "PriorityClass" => {
            let class = spec.priority_class_name.unwrap_or_default();
            match operator {
                "In" => !class.is_empty() && values.contains(&class),
                "NotIn" => !values.contains(&class),
                "DoesNotExist" => class.is_empty(),
                _ => !class.is_empty(),
            }
        }
        _ => false,
    }
}
