// SPDX-License-Identifier: Apache-2.0
//! Which nodes one pod could have, and why not the others.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{Container, ContainerPort, Pod, PodSpec, Taint};

use super::{
    board::{Board, Spot},
    company::Company,
    spread::Spread,
};
use crate::{
    placement,
    room::{self, Amounts},
};

/// Why a pod cannot have a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reasons: Vec<Cow<'static, str>>,
    /// No other pod could change it by going.
    pub helpless: bool,
}

/// One pod that looks at all nodes.
#[derive(Debug)]
pub struct Look<'a> {
    pub spec: &'a PodSpec,
    pub needs: &'a Amounts,
    pub company: Company,
    pub spread: Spread,
    named: Option<Vec<&'a String>>,
    ports: Vec<Port>,
}

/// A port of the node itself: address, protocol, number.
type Port = (String, String, i32);

fn refuse(reason: &'static str, helpless: bool) -> Option<Refusal> {
    Some(Refusal { reasons: vec![Cow::Borrowed(reason)], helpless })
}

impl<'a> Look<'a> {
    pub fn new(pod: &'a Pod, needs: &'a Amounts, board: &Board) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let (company, spread) = (Company::new(pod, board), Spread::new(pod, board));
        Some(Self { spec, needs, company, spread, named: placement::named(spec), ports: ports(spec) })
    }

    /// The first rule that a node breaks is the one that is told.
    pub fn refusal(&self, spot: &Spot) -> Option<Refusal> {
        if self.named.as_ref().is_some_and(|names| names.iter().all(|name| *name != spot.name())) {
            return refuse("node(s) didn't satisfy plugin(s) [NodeAffinity]", true);
        }
        if self.is_cordoned_off(spot) {
            return refuse("node(s) were unschedulable", true);
        }
        if self.is_repelled(spot) {
            return refuse("node(s) had untolerated taint(s)", true);
        }
        if !placement::selects(self.spec, &spot.node) {
            return refuse("node(s) didn't match Pod's node affinity/selector", true);
        }
        if self.lacks_ports(spot) {
            return refuse("node(s) didn't have free ports for the requested pod ports", false);
        }
        let rules = || self.spread.refusal(spot).or_else(|| self.company.refusal(spot));
        self.lacks_room(spot).or_else(|| rules().and_then(|(reason, helpless)| refuse(reason, helpless)))
    }

    fn is_cordoned_off(&self, spot: &Spot) -> bool {
        let (key, effect) = ("node.kubernetes.io/unschedulable".to_owned(), "NoSchedule".to_owned());
        spot.node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true)
            && !placement::is_tolerated(self.spec, &Taint { key, effect, ..Taint::default() })
    }

    fn is_repelled(&self, spot: &Spot) -> bool {
        let mut hard = placement::taints(&spot.node).iter().filter(|taint| taint.effect != "PreferNoSchedule");
        hard.any(|taint| !placement::is_tolerated(self.spec, taint))
    }

    fn lacks_ports(&self, spot: &Spot) -> bool {
        !self.ports.is_empty()
            && spot.guests.iter().filter_map(|guest| guest.pod.spec.as_ref()).flat_map(ports).any(
                |(ip, kind, number)| {
                    let clash =
                        |one: &Port| (one.0 == ip || one.0 == ANY || ip == ANY) && one.1 == kind && one.2 == number;
                    self.ports.iter().any(clash)
                },
            )
    }

    fn lacks_room(&self, spot: &Spot) -> Option<Refusal> {
        let lacks = room::lacks(self.needs, &spot.used, &spot.has);
        if lacks.is_empty() {
            return None;
        }
        let helpless = !room::lacks(self.needs, &Amounts::new(), &spot.has).is_empty();
        let words = |name: String| {
            if name == room::PODS { Cow::Borrowed("Too many pods") } else { Cow::Owned(format!("Insufficient {name}")) }
        };
        Some(Refusal { reasons: lacks.into_iter().map(words).collect(), helpless })
    }
}

const ANY: &str = "0.0.0.0";

fn ports(spec: &PodSpec) -> Vec<Port> {
    let staying = spec.init_containers.iter().flatten().filter(|container| room::stays(container));
    let of = |container: &Container| container.ports.clone().unwrap_or_default();
    let text = |text: Option<String>, default: &str| text.filter(|one| !one.is_empty()).unwrap_or(default.to_owned());
    let on_node = |port: ContainerPort| {
        let number = port.host_port.filter(|number| *number > 0)?;
        Some((text(port.host_ip, ANY), text(port.protocol, "TCP"), number))
    };
    spec.containers.iter().chain(staying).flat_map(of).filter_map(on_node).collect()
}
