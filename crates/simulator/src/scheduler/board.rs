// SPDX-License-Identifier: Apache-2.0
//! The nodes, and who is on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};

use crate::{
    kinds::View,
    labels::Labels,
    room::{self, Amounts},
    shelf::Key,
    workload::phase,
};

/// All nodes, in the order of their names.
#[derive(Debug)]
pub struct Board {
    pub spots: Vec<Spot>,
    pub namespaces: BTreeMap<String, Labels>,
    pub budgets: Vec<Arc<PodDisruptionBudget>>,
}

#[derive(Clone, Debug)]
pub struct Spot {
    pub node: Arc<Node>,
    pub has: Amounts,
    pub used: Amounts,
    /// Like `used`, of cpu and memory, with what pods are taken to use if they do not say.
    pub taken: [i64; 2],
    pub guests: Vec<Guest>,
}

/// A pod that has a node, or for which one is kept free.
#[derive(Clone, Debug)]
pub struct Guest {
    pub pod: Arc<Pod>,
    pub needs: Amounts,
}

/// What the cpu and the memory of a pod are counted as, when nodes are compared: if it does not say, a tenth of a cpu and
/// 200 megabytes.
pub fn usual(needs: &Amounts) -> [i64; 2] {
    let of = |name: &str, usual: i64| needs.get(name).copied().filter(|one| *one > 0).unwrap_or(usual);
    [of(room::CPU, 100), of(room::MEMORY, 200 * 1024 * 1024)]
}

pub fn priority(pod: &Pod) -> i32 {
    pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default()
}

// === impl Board ===

impl Board {
    pub fn new(view: &View) -> Self {
        let spots = view.nodes.iter().map(|node| {
            let has = room::of_node(node);
            let mut spot = Spot { node: node.clone(), has, used: Amounts::new(), taken: [0; 2], guests: Vec::new() };
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let living = view.pods_on(name).filter(|pod| !matches!(phase(pod), "Succeeded" | "Failed"));
            living.for_each(|pod| spot.seat(pod.clone(), room::needs(pod)));
            spot
        });
        let labels = view.namespaces.iter().map(|one| {
            (one.metadata.name.clone().unwrap_or_default(), one.metadata.labels.clone().unwrap_or_default())
        });
        let budgets = view.disruption_budgets.iter().cloned();
        Self { spots: spots.collect(), namespaces: labels.collect(), budgets: budgets.collect() }
    }

    pub fn spot_mut(&mut self, name: &str) -> Option<&mut Spot> {
        self.spots.iter_mut().find(|spot| spot.name() == name)
    }

    /// The same nodes without some of the pods.
    pub fn without(&self, gone: &BTreeSet<Key>) -> Self {
        let (namespaces, budgets) = (self.namespaces.clone(), self.budgets.clone());
        let mut board = Self { spots: self.spots.clone(), namespaces, budgets };
        for spot in &mut board.spots {
            let (leave, stay): (Vec<_>, _) = std::mem::take(&mut spot.guests)
                .into_iter()
                .partition(|guest| gone.contains(&Key::of(&guest.pod.metadata)));
            leave.iter().for_each(|guest| room::subtract(&mut spot.used, &guest.needs));
            spot.guests = stay;
        }
        board
    }
}

// === impl Spot ===

impl Spot {
    pub fn name(&self) -> &str {
        self.node.metadata.name.as_deref().unwrap_or_default()
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        Some(self.node.metadata.labels.as_ref()?.get(key)?.as_str())
    }

    pub fn seat(&mut self, pod: Arc<Pod>, needs: Amounts) {
        room::add(&mut self.used, &needs);
        let usual = usual(&needs);
        self.taken.iter_mut().zip(usual).for_each(|(sum, more)| *sum += more);
        self.guests.push(Guest { pod, needs });
    }
}
