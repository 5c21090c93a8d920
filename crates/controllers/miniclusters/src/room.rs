// SPDX-License-Identifier: Apache-2.0
//! Whether the nodes that exist can hold all ranks of a cluster at once. Machines that are about to come can be passed
//! in as nodes.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashMap},
};

use bivouac_core::Quantity;
use k8s_openapi::{
    api::core::v1::{Container, Node, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Taint, Toleration},
    apimachinery::pkg::api::resource::Quantity as Text,
};

/// Pods that must all find a place.
#[derive(Clone, Copy, Debug)]
pub struct Ranks<'a> {
    pub pod: &'a PodSpec,
    pub count: i32,
}

/// How many of the ranks find a place, and what keeps nodes from holding more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    pub wanted: i32,
    pub fits: i32,
    /// Nodes by what they lack.
    pub lacking: BTreeMap<String, i32>,
}

impl Room {
    pub fn is_enough(&self) -> bool {
        self.fits >= self.wanted
    }

    pub fn sentence(&self) -> String {
        let Room { wanted, fits, lacking } = self;
        if lacking.is_empty() && fits < wanted {
            return format!("there is room for {fits} of {wanted} ranks: no node can take pods");
        }
        let nodes = |count: &i32| if *count == 1 { "node" } else { "nodes" };
        let lacking = lacking.iter().map(|(what, count)| format!("{count} {} {what}", nodes(count)));
        format!("there is room for {fits} of {wanted} ranks: {}", lacking.collect::<Vec<_>>().join(", "))
    }
}

/// By the name of the resource. The cpu is counted in thousandths.
type Amounts = BTreeMap<String, i64>;

/// Fills the nodes one after the other, beside the pods that are on them.
pub fn room(pods: &[impl Borrow<Pod>], nodes: &[impl Borrow<Node>], ranks: Ranks<'_>) -> Room {
    let mut used: HashMap<&str, Amounts> = HashMap::new();
    for pod in pods.iter().map(Borrow::borrow).filter(|pod| is_there(pod)) {
        let Some(spec) = &pod.spec else { continue };
        let Some(node) = spec.node_name.as_deref() else { continue };
        add(used.entry(node).or_default(), &needs(spec));
    }
    let needs = needs(ranks.pod);
    let mut room = Room { wanted: ranks.count, ..Room::default() };
    for node in nodes.iter().map(Borrow::borrow) {
        let used = node.metadata.name.as_deref().and_then(|name| used.get(name));
        let lack = match closed(node, ranks.pod) {
            Some(why) => why.to_owned(),
            None => {
                let (count, scarce) = holds(&needs, node, used.unwrap_or(&Amounts::new()));
                room.fits = room.fits.saturating_add(count).min(ranks.count);
                if count > 0 { format!("then out of {scarce}") } else { format!("short of {scarce}") }
            }
        };
        *room.lacking.entry(lack).or_default() += 1;
    }
    room
}

/// Ended pods take nothing.
fn is_there(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Why no pod like this may go to the node at all.
fn closed(node: &Node, pod: &PodSpec) -> Option<&'static str> {
    let spec = node.spec.clone().unwrap_or_default();
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let tolerated = |taint: &Taint| pod.tolerations.iter().flatten().any(|one| tolerates(one, taint));
    let hard = |taint: &&Taint| taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    if spec.unschedulable == Some(true) {
        Some("closed to new pods")
    } else if !ready {
        Some("not ready")
    } else if !selects(pod, node) {
        Some("not selected by the pods")
    } else if spec.taints.iter().flatten().filter(hard).any(|taint| !tolerated(taint)) {
        Some("with a taint that the pods do not tolerate")
    } else {
        None
    }
}

fn tolerates(one: &Toleration, taint: &Taint) -> bool {
    let any = |wish: &Option<String>, have: &str| wish.as_deref().is_none_or(|wish| wish.is_empty() || wish == have);
    let value = || one.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default();
    // Only `Exists` may leave the key out.
    let exists = one.operator.as_deref() == Some("Exists");
    let keyed = one.key.as_deref().is_some_and(|key| !key.is_empty());
    any(&one.effect, &taint.effect) && any(&one.key, &taint.key) && (exists || (keyed && value()))
}

fn selects(pod: &PodSpec, node: &Node) -> bool {
    let empty = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&empty);
    let affinity = pod.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|nodes| nodes.required_during_scheduling_ignored_during_execution.as_ref());
    pod.node_selector.iter().flatten().all(|(key, value)| labels.get(key) == Some(value))
        && required.is_none_or(|required| required.node_selector_terms.iter().any(|term| matches(term, labels, node)))
}

/// A term that asks for nothing matches nothing.
fn matches(term: &NodeSelectorTerm, labels: &BTreeMap<String, String>, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|one| met(one, labels.get(&one.key).map(String::as_str)))
        && fields.iter().all(|one| met(one, node.metadata.name.as_deref().filter(|_| one.key == "metadata.name")))
}

fn met(one: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = one.values.as_deref().unwrap_or_default();
    let among = |value: &str| values.iter().any(|wish| wish == value);
    let number = |text: &str| text.parse::<i64>().ok();
    let bound = values.first().and_then(|text| number(text));
    match one.operator.as_str() {
        "In" => value.is_some_and(among),
        "NotIn" => value.is_none_or(|value| !among(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => value.and_then(number).zip(bound).is_some_and(|(have, bound)| have > bound),
        "Lt" => value.and_then(number).zip(bound).is_some_and(|(have, bound)| have < bound),
        _ => false,
    }
}

/// How many such pods the node takes beside what it has, and the resource that ends first.
fn holds(needs: &Amounts, node: &Node, used: &Amounts) -> (i32, String) {
    let status = node.status.clone().unwrap_or_default();
    let has = read(status.allocatable.as_ref().or(status.capacity.as_ref()), 0);
    let count = |(name, need): (&String, &i64)| {
        let free = has.get(name).unwrap_or(&0).saturating_sub(*used.get(name).unwrap_or(&0)).max(0);
        (i32::try_from(free / need).unwrap_or(i32::MAX), name.clone())
    };
    needs.iter().filter(|(_, need)| **need > 0).map(count).min().unwrap_or_default()
}

/// Containers run together; init containers before them, one by one, except those that stay. Then the pod itself is one
/// of the pods that a node can have.
fn needs(spec: &PodSpec) -> Amounts {
    let (mut total, mut peak, mut staying) = (Amounts::new(), Amounts::new(), Amounts::new());
    spec.containers.iter().for_each(|container| add(&mut total, &asks(container)));
    for container in spec.init_containers.iter().flatten() {
        let mut then = staying.clone();
        add(&mut then, &asks(container));
        if container.restart_policy.as_deref() == Some("Always") {
            staying.clone_from(&then);
        }
        raise(&mut peak, &then);
    }
    add(&mut total, &staying);
    raise(&mut total, &peak);
    total.extend(read(spec.resources.as_ref().and_then(|all| all.requests.as_ref()), i64::MAX));
    add(&mut total, &read(spec.overhead.as_ref(), i64::MAX));
    total.insert("pods".to_owned(), 1);
    total
}

/// A limit without a request is a request.
fn asks(container: &Container) -> Amounts {
    let resources = container.resources.clone().unwrap_or_default();
    let mut asks = read(resources.limits.as_ref(), i64::MAX);
    asks.extend(read(resources.requests.as_ref(), i64::MAX));
    asks
}

/// What cannot be read counts as `otherwise`: a need as endless, a supply as nothing.
fn read(texts: Option<&BTreeMap<String, Text>>, otherwise: i64) -> Amounts {
    let amount = |name: &str, text: &Text| {
        let quantity = text.0.parse::<Quantity>().ok()?;
        if name == "cpu" { quantity.milli_value() } else { quantity.value() }
    };
    texts.into_iter().flatten().map(|(name, text)| (name.clone(), amount(name, text).unwrap_or(otherwise))).collect()
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, more) in more {
        let known = total.entry(name.clone()).or_default();
        *known = known.saturating_add(*more);
    }
}

fn raise(total: &mut Amounts, least: &Amounts) {
    for (name, least) in least {
        let known = total.entry(name.clone()).or_default();
        *known = (*known).max(*least);
    }
}
