// SPDX-License-Identifier: Apache-2.0
//! A MiniCluster, read once into a form that builders can trust, or refused with a sentence for every fault.

use std::{collections::BTreeMap, time::Duration};

use bivouac_api::flux::{Container, Flux, FluxContainer, LeadBroker, Logging, MiniCluster, MiniClusterSpec, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use crate::faults;

/// `image` or `copy`: how Flux comes into the pods.
pub const VIEW_ANNOTATION: &str = "bivouac.dev/view";

/// The label of all children of all MiniClusters: they are watched by it.
pub const COMPONENT: (&str, &str) = ("app.kubernetes.io/component", "minicluster");

/// Values that an installation may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The domain that the DNS of the Kubernetes cluster answers for.
    pub cluster_domain: String,
    /// Keep the certificate in the ConfigMap, where earlier tools look for it, and where more people can read it.
    pub certificate_in_config_map: bool,
    /// Start every cluster all or nothing; a MiniCluster asks for it alone by an annotation.
    pub gang: bool,
    /// How long a cluster is held back for want of room before `gang_then` decides.
    pub gang_hold: Duration,
    pub gang_then: GangThen,
    /// Set `job-index` on every pod, even if nothing selects on it.
    pub label_all_pods: bool,
    /// Mount the image with Flux into the pods instead of copying from it; a MiniCluster chooses by an annotation.
    pub view_by_image: bool,
}

/// What becomes of a cluster that was held back long enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GangThen {
    /// It waits on.
    Wait,
    /// Its pods are made all the same, so that a cluster autoscaler sees them.
    Release,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cluster_domain: "cluster.local".to_owned(),
            certificate_in_config_map: false,
            gang: false,
            gang_hold: Duration::from_secs(60),
            gang_then: GangThen::Wait,
            label_all_pods: false,
            view_by_image: false,
        }
    }
}

fn is_view_mounted(minicluster: &MiniCluster, settings: &Settings) -> bool {
    minicluster.annotations().get(VIEW_ANNOTATION).map_or(settings.view_by_image, |wish| wish == "image")
}

/// What runs on the lead broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is submitted unless the container has a command.
    Submit,
    Launcher,
    Batch,
}

/// One container of the pods and its place in the list, which names its entry point.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    pub index: usize,
    pub container: &'a Container,
}

/// What one MiniCluster asks for.
#[derive(Debug)]
pub struct Cluster<'a> {
    pub name: String,
    pub namespace: String,
    pub spec: &'a MiniClusterSpec,
    pub size: i32,
    /// As many hosts are in the configuration of the brokers.
    pub max_size: i32,
    pub headless_name: String,
    pub runner: Placed<'a>,
    pub sidecars: Vec<Placed<'a>>,
    pub flux: Flux,
    pub view: FluxContainer,
    /// Flux comes from the mounted image: nothing is copied.
    pub is_view_mounted: bool,
    pub logging: Logging,
    pub pod: Pod,
    pub settings: Settings,
}

impl<'a> Cluster<'a> {
    /// `size` is what the cluster runs with now: a wish above the maximum is cut before.
    pub fn of(minicluster: &'a MiniCluster, size: i32, settings: &Settings) -> Result<Self, Vec<String>> {
        let spec = &minicluster.spec;
        let faults = faults::of(minicluster);
        let runner = runner(&spec.containers).filter(|_| faults.is_empty());
        let Some(runner) = runner else { return Err(faults) };
        let placed = spec.containers.iter().enumerate().map(|(index, container)| Placed { index, container });
        let flux = spec.flux.clone().unwrap_or_default();
        let name = minicluster.name_any();
        let headless = spec.network.as_ref().map(|network| network.headless_name.clone()).unwrap_or_default();
        Ok(Self {
            namespace: minicluster.namespace().unwrap_or_default(),
            spec,
            size,
            max_size: maximum(minicluster),
            headless_name: if headless.is_empty() { name.clone() } else { headless },
            sidecars: placed.filter(|one| one.index != runner.index).collect(),
            runner,
            is_view_mounted: is_view_mounted(minicluster, settings) && !view(&flux).disable,
            view: view(&flux),
            flux,
            logging: spec.logging.clone().unwrap_or_default(),
            pod: spec.pod.clone().unwrap_or_default(),
            settings: settings.clone(),
            name,
        })
    }

    pub fn mode(&self) -> Mode {
        match self.runner.container {
            Container { batch: true, .. } => Mode::Batch,
            Container { launcher: true, .. } => Mode::Launcher,
            _ => Mode::Submit,
        }
    }

    /// The cluster that this one joins, if it does not lead.
    pub fn leader(&self) -> Option<&LeadBroker> {
        let leader = self.flux.bursting.as_ref()?.lead_broker.as_ref()?;
        (!leader.address.is_empty()).then_some(leader)
    }

    /// Brokers that must be there before work starts; absent when that is all of them, as Flux has it by itself.
    pub fn quorum(&self) -> Option<i32> {
        match self.spec.min_size {
            0 => (self.max_size != self.size).then_some(self.size),
            least => Some(least.min(self.size)),
        }
    }

    /// Metadata of a child.
    pub fn meta(&self, name: &str, labels: &BTreeMap<String, String>) -> ObjectMeta {
        let mut labels = labels.clone();
        labels.insert(COMPONENT.0.to_owned(), COMPONENT.1.to_owned());
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(self.namespace.clone()),
            labels: Some(labels),
            ..ObjectMeta::default()
        }
    }

    pub fn config_map_name(&self) -> String {
        format!("{}-entrypoint", self.name)
    }

    pub fn secret_name(&self) -> String {
        format!("{}-curve", self.name)
    }

    pub fn services_name(&self) -> String {
        format!("{}-services", self.name)
    }
}

/// Most pods that the cluster can have: fixed when it was first seen, because all brokers know their hosts from then on.
pub fn maximum(minicluster: &MiniCluster) -> i32 {
    let known = minicluster.status.as_ref().map_or(0, |status| status.maximum_size);
    let spec = &minicluster.spec;
    if known > 0 { known } else { spec.max_size.max(spec.size) }
}

/// The container that runs Flux: the only one there is, or the only one that says so.
pub fn runner(containers: &[Container]) -> Option<Placed<'_>> {
    if let [container] = containers {
        return Some(Placed { index: 0, container });
    }
    let mut runners = containers.iter().enumerate().filter(|(_, container)| container.run_flux);
    let (index, container) = runners.next()?;
    runners.next().is_none().then_some(Placed { index, container })
}

/// Empty texts stand for the defaults, as for Go clients.
pub fn view(flux: &Flux) -> FluxContainer {
    let mut view = flux.container.clone().unwrap_or_default();
    let usual = FluxContainer::default();
    for (text, usual) in
        [(&mut view.name, usual.name), (&mut view.image, usual.image), (&mut view.mount_path, usual.mount_path)]
    {
        if text.is_empty() {
            *text = usual;
        }
    }
    view.mount_path.truncate(view.mount_path.trim_end_matches('/').len());
    view
}
