// SPDX-License-Identifier: Apache-2.0
//! How much a pod needs, and how much a node has.

use std::collections::BTreeMap;

use bivouac_core::Quantity;
use k8s_openapi::{
    api::core::v1::{Container, Node, Pod, PodSpec},
    apimachinery::pkg::api::resource::Quantity as Text,
};

/// By the name of the resource. The cpu is counted in thousandths.
pub type Amounts = BTreeMap<String, i64>;

pub const PODS: &str = "pods";
pub const CPU: &str = "cpu";
pub const MEMORY: &str = "memory";

fn amount(name: &str, text: &Text) -> i64 {
    let parsed = text.0.parse::<Quantity>().ok();
    parsed.and_then(|one| if name == CPU { one.milli_value() } else { one.value() }).unwrap_or_default()
}

pub fn read(texts: Option<&BTreeMap<String, Text>>) -> Amounts {
    texts.into_iter().flatten().map(|(name, text)| (name.clone(), amount(name, text))).collect()
}

pub fn add(total: &mut Amounts, more: &Amounts) {
    for (name, more) in more {
        *total.entry(name.clone()).or_default() += more;
    }
}

pub fn subtract(total: &mut Amounts, less: &Amounts) {
    for (name, less) in less {
        *total.entry(name.clone()).or_default() -= less;
    }
}

fn raise(total: &mut Amounts, least: &Amounts) {
    for (name, least) in least {
        let known = total.entry(name.clone()).or_default();
        *known = (*known).max(*least);
    }
}

/// Containers run together; those before them run one by one, but for those that stay. The pod itself is one of the
/// pods that a node can have.
pub fn needs(pod: &Pod) -> Amounts {
    let mut total = pod.spec.as_ref().map(of_spec).unwrap_or_default();
    total.insert(PODS.to_owned(), 1);
    total
}

fn of_spec(spec: &PodSpec) -> Amounts {
    let asks = |container: &Container| read(container.resources.as_ref().and_then(|all| all.requests.as_ref()));
    let (mut total, mut peak, mut staying) = (Amounts::new(), Amounts::new(), Amounts::new());
    spec.containers.iter().for_each(|container| add(&mut total, &asks(container)));
    for container in spec.init_containers.iter().flatten() {
        let mut then = staying.clone();
        add(&mut then, &asks(container));
        if stays(container) {
            staying.clone_from(&then);
        }
        raise(&mut peak, &then);
    }
    add(&mut total, &staying);
    raise(&mut total, &peak);
    total.extend(read(spec.resources.as_ref().and_then(|all| all.requests.as_ref())));
    add(&mut total, &read(spec.overhead.as_ref()));
    total
}

/// Runs beside the others, although it starts before them.
pub fn stays(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// What a node can give to pods.
pub fn of_node(node: &Node) -> Amounts {
    read(node.status.as_ref().and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref())))
}

/// What is missing, in the order in which people are told.
pub fn lacks(needs: &Amounts, used: &Amounts, has: &Amounts) -> Vec<String> {
    const FIRST: [&str; 4] = [PODS, CPU, MEMORY, "ephemeral-storage"];
    let free = |name: &str| has.get(name).unwrap_or(&0) - used.get(name).unwrap_or(&0);
    let others = needs.keys().map(String::as_str).filter(|name| !FIRST.contains(name));
    let short = |name: &&str| needs.get(*name).is_some_and(|needed| *needed > 0 && *needed > free(name));
    FIRST.into_iter().chain(others).filter(short).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_largest_moment_counts() {
        let with = |cpu: &str, more: serde_json::Value| {
            let mut one = json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } });
            one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            one
        };
        let stays = json!({ "restartPolicy": "Always" });
        let cases = [
            (json!({ "containers": [with("1", json!({})), with("500m", json!({}))] }), 1_500),
            (json!({ "initContainers": [with("2", json!({}))], "containers": [with("1", json!({}))] }), 2_000),
            (json!({ "initContainers": [with("2", stays.clone())], "containers": [with("1", json!({}))] }), 3_000),
            (
                json!({ "initContainers": [with("2", stays), with("5", json!({}))],
                    "containers": [with("1", json!({}))] }),
                7_000,
            ),
            (json!({ "containers": [with("1", json!({}))], "overhead": { "cpu": "100m" } }), 1_100),
            (json!({ "containers": [with("1", json!({}))], "resources": { "requests": { "cpu": "3" } } }), 3_000),
        ];
        for (spec, expected) in cases {
            let pod: Pod = serde_json::from_value(json!({ "spec": spec })).unwrap();
            assert_eq!(needs(&pod).get(CPU), Some(&expected), "{pod:?}");
        }
    }
}
