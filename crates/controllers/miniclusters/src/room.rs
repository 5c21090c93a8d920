// SPDX-License-Identifier: Apache-2.0
//! Whether the nodes that exist can hold all ranks of a cluster at once. Machines that are about to come can be passed
//! in as nodes.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashMap},
};

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration};

use crate::supply::{Amounts, Machine, Occupant, add, needs_of};

/// Pods that must all find a place.
#[derive(Clone, Copy, Debug)]
pub struct Ranks<'a> {
    pub pod: &'a PodSpec,
    pub count: i32,
}

/// Pods of another cluster that have no node yet, and come before ours.
#[derive(Clone, Debug)]
pub struct Rival {
    pub pod: PodSpec,
    pub count: i32,
    /// Its pods are being made. Who has not started waits as we do, and takes nothing unless all of it fits.
    pub has_started: bool,
}

/// How many of the ranks find a place, and what keeps nodes from holding more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    pub wanted: i32,
    pub fits: i32,
    /// Nodes by what they lack.
    pub lacking: BTreeMap<String, i32>,
    /// So many other clusters got their room first.
    pub rivals: i32,
}

impl Room {
    pub fn is_enough(&self) -> bool {
        self.fits >= self.wanted
    }

    pub fn sentence(&self) -> String {
        let Room { wanted, fits, lacking, rivals } = self;
        let after = match rivals {
            0 => String::new(),
            1 => " after another MiniCluster that comes first".to_owned(),
            more => format!(" after {more} other MiniClusters that come first"),
        };
        if lacking.is_empty() && fits < wanted {
            return format!("there is room for {fits} of {wanted} ranks{after}: no node can take pods");
        }
        let nodes = |count: &i32| if *count == 1 { "node" } else { "nodes" };
        let lacking = lacking.iter().map(|(what, count)| format!("{count} {} {what}", nodes(count)));
        format!("there is room for {fits} of {wanted} ranks{after}: {}", lacking.collect::<Vec<_>>().join(", "))
    }
}

/// Fills the nodes one after the other, beside the pods that are on them and after the rivals. Two clusters that count
/// at the same moment come to the same order, so they do not both take the last room.
pub fn room(
    pods: &[impl Borrow<Occupant>],
    nodes: &[impl Borrow<Machine>],
    rivals: &[Rival],
    ranks: Ranks<'_>,
) -> Room {
    let mut used: HashMap<&str, Amounts> = HashMap::new();
    for pod in pods.iter().map(Borrow::borrow).filter(|pod| pod.is_there) {
        let Some(node) = pod.node.as_deref() else { continue };
        add(used.entry(node).or_default(), &pod.needs);
    }
    let of = |node: &Machine| node.metadata.name.as_deref().and_then(|name| used.get(name)).cloned();
    let yard = nodes.iter().map(Borrow::borrow).map(|node| (node, of(node).unwrap_or_default()));
    let mut yard: Vec<(&Machine, Amounts)> = yard.collect();
    let mut first = 0;
    for Rival { pod, count, has_started } in rivals {
        let before = yard.clone();
        let theirs = place(&mut yard, Ranks { pod, count: *count });
        if *has_started || theirs.is_enough() {
            first += i32::from(theirs.fits > 0);
        } else {
            yard = before;
        }
    }
    Room { rivals: first, ..place(&mut yard, ranks) }
}

/// Puts as many of the ranks as possible on the nodes, each of which comes with what is used of it.
fn place(yard: &mut [(&Machine, Amounts)], ranks: Ranks<'_>) -> Room {
    let needs = needs_of(ranks.pod);
    let mut room = Room { wanted: ranks.count, ..Room::default() };
    for (node, used) in yard {
        let lack = match closed(node, ranks.pod) {
            Some(why) => why.to_owned(),
            None => {
                let (count, scarce) = holds(&needs, node, used);
                let taken = count.min(ranks.count - room.fits);
                room.fits += taken;
                add(used, &times(&needs, taken));
                if count > 0 { format!("then out of {scarce}") } else { format!("short of {scarce}") }
            }
        };
        *room.lacking.entry(lack).or_default() += 1;
    }
    room
}

fn times(needs: &Amounts, count: i32) -> Amounts {
    needs.iter().map(|(name, need)| (name.clone(), need.saturating_mul(i64::from(count)))).collect()
}

/// Why no pod like this may go to the node at all.
fn closed(node: &Machine, pod: &PodSpec) -> Option<&'static str> {
    let tolerated = |taint: &Taint| pod.tolerations.iter().flatten().any(|one| tolerates(one, taint));
    let hard = |taint: &&Taint| taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    if node.is_closed {
        Some("closed to new pods")
    } else if !node.is_ready {
        Some("not ready")
    } else if !selects(pod, node) {
        Some("not selected by the pods")
    } else if node.taints.iter().filter(hard).any(|taint| !tolerated(taint)) {
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

fn selects(pod: &PodSpec, node: &Machine) -> bool {
    let empty = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&empty);
    let affinity = pod.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|nodes| nodes.required_during_scheduling_ignored_during_execution.as_ref());
    pod.node_selector.iter().flatten().all(|(key, value)| labels.get(key) == Some(value))
        && required.is_none_or(|required| required.node_selector_terms.iter().any(|term| matches(term, labels, node)))
}

/// A term that asks for nothing matches nothing.
fn matches(term: &NodeSelectorTerm, labels: &BTreeMap<String, String>, node: &Machine) -> bool {
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
fn holds(needs: &Amounts, node: &Machine, used: &Amounts) -> (i32, String) {
    let count = |(name, need): (&String, &i64)| {
        let free = node.has.get(name).unwrap_or(&0).saturating_sub(*used.get(name).unwrap_or(&0)).max(0);
        (i32::try_from(free / need).unwrap_or(i32::MAX), name.clone())
    };
    needs.iter().filter(|(_, need)| **need > 0).map(count).min().unwrap_or_default()
}
