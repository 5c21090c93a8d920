// SPDX-License-Identifier: Apache-2.0
//! What a plan for one MiniCluster needs to know. Reading only, no judgement.

use std::{collections::BTreeSet, sync::Arc};

use bivouac_api::flux::MiniCluster;
use bivouac_runtime::{
    capabilities::Presence,
    mirror::Key,
    reconcile::{Category, Error, Failure, Kind, Live, Objects},
};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ConfigMap, Pod, Secret, Service},
};
use kube::{
    Api, Client, ResourceExt,
    core::{ApiResource, DynamicObject},
};

use crate::{
    build,
    certificate::Certificate,
    cluster::{COMPONENT, Cluster, Settings},
    gang::is_gang,
    plan::{is_over, is_suspended},
    rivals,
    room::Rival,
    sight::Sight,
    supply::{Machine, Occupant},
};

/// The part of the Kubernetes cluster that concerns one MiniCluster.
#[derive(Debug)]
pub struct World {
    /// The stored certificate, or else one from fresh random bytes: a plan has no randomness.
    pub certificate: Certificate,
    pub is_certificate_stored: bool,
    pub job: Option<Job>,
    pub services_pod: Option<Pod>,
    /// Pods of the Job: the lead, and the others where somebody cares for them.
    pub ranks: Vec<Rank>,
    /// Children's names that belong to somebody else, as (kind, name).
    pub strangers: BTreeSet<(&'static str, String)>,
    /// A Service, NetworkPolicy or disruption budget of the namespace selects on `job-index`.
    pub is_index_selected: bool,
    /// All nodes and pods, read only where all ranks must start at once.
    pub nodes: Vec<Arc<Machine>>,
    pub pods: Vec<Arc<Occupant>>,
    /// Who takes room before us; read only then, too.
    pub rivals: Vec<Rival>,
    /// Nodes that go away soon, while the Job runs.
    pub going: BTreeSet<String>,
    /// Whether Kueue is there to hold Jobs back.
    pub kueue: Presence,
    /// The writes that the server just refused.
    pub refusals: Vec<Refusal>,
}

/// One pod of the Job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rank {
    pub pod: String,
    pub uid: String,
    pub index: String,
    /// Its label `job-index`.
    pub label: Option<String>,
    /// What the runner ended with, if it did.
    pub exit_code: Option<i32>,
    pub node: Option<String>,
    /// Its end was asked for.
    pub is_ending: bool,
}

/// A child that could not be written, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub category: Category,
    pub text: String,
}

impl World {
    /// Nothing exists yet.
    pub fn empty(certificate: Certificate) -> Self {
        Self {
            certificate,
            is_certificate_stored: false,
            job: None,
            services_pod: None,
            ranks: Vec::new(),
            strangers: BTreeSet::new(),
            is_index_selected: false,
            nodes: Vec::new(),
            pods: Vec::new(),
            rivals: Vec::new(),
            going: BTreeSet::new(),
            kueue: Presence::Absent,
            refusals: Vec::new(),
        }
    }
}

/// Where to look, beside the children.
pub struct Eyes<'a> {
    pub settings: &'a Settings,
    pub sight: &'a Sight,
    pub client: &'a Client,
    pub kueue: Presence,
    pub miniclusters: &'a Objects<MiniCluster>,
}

impl Eyes<'_> {
    /// All of it comes from memory, but for children that others may have made before us: those are asked for.
    pub async fn observe(&self, minicluster: &MiniCluster, live: &Live<'_>) -> Result<World, Error> {
        let (namespace, name) = (minicluster.namespace().unwrap_or_default(), minicluster.name_any());
        for failure in live.failures().iter().filter(|failure| failure.error.category() == Category::Conflict) {
            self.look_at(&failure.kind, &failure.key, live).await?;
        }
        let strangers = self.strangers(minicluster, live).await?;
        let job = live.read::<Job>(&namespace, &name).filter(|_| !strangers.contains(&("Job", name.clone())));
        let stored = self.stored(minicluster, live);
        let waits = job.as_ref().is_none_or(is_suspended);
        let runs = !waits && !job.as_ref().is_some_and(is_over);
        let mut world = World {
            is_certificate_stored: stored.is_some(),
            services_pod: live.read::<Pod>(&namespace, &format!("{name}-services")),
            is_index_selected: self.sight.is_index_selected(&namespace).await,
            going: if runs { self.sight.going().await } else { BTreeSet::new() },
            strangers,
            kueue: self.kueue,
            refusals: live.failures().iter().map(refusal).collect(),
            ..World::empty(stored.unwrap_or_else(|| Certificate::new(rand::random(), &format!("{name}-0"))))
        };
        world.ranks = self.ranks(job.as_ref(), &world).await;
        if waits && is_gang(minicluster, self.settings) {
            world.nodes = self.sight.machines.look().await.all();
            world.pods = self.sight.occupants.look().await.all();
            world.rivals = self.rivals(minicluster, live).await;
        }
        world.job = job;
        Ok(world)
    }

    /// The lead, and the others where something may have to be done for them.
    async fn ranks(&self, job: Option<&Job>, world: &World) -> Vec<Rank> {
        let Some(uid) = job.and_then(|job| job.uid()) else { return Vec::new() };
        let labels = self.settings.label_all_pods || world.is_index_selected;
        let all = labels || !world.going.is_empty() || !self.sight.misnamed.look().await.is_empty();
        let ranks = if all { self.sight.ranks.look_at_all().await } else { self.sight.ranks.look().await };
        ranks.owned_by(&uid).iter().filter_map(|pod| pod.rank()).collect()
    }

    /// The other clusters that take room before this one.
    async fn rivals(&self, minicluster: &MiniCluster, live: &Live<'_>) -> Vec<Rival> {
        let ranks = self.sight.ranks.look_at_all().await;
        let others = self.miniclusters.filter(|other| other.uid() != minicluster.uid());
        let others = others.iter().filter_map(|guard| guard.0.as_ref().ok()).map(|other| {
            let job = live.read::<Job>(&other.namespace().unwrap_or_default(), &other.name_any());
            let pods = job.as_ref().and_then(|job| job.uid()).map(|uid| ranks.owned_by(&uid)).unwrap_or_default();
            let placed = pods.iter().filter(|pod| pod.node().is_some()).count();
            rivals::Other { minicluster: other, job, placed: i32::try_from(placed).unwrap_or(i32::MAX) }
        });
        rivals::before(minicluster, others.collect(), self.settings, self.kueue)
    }

    /// The certificate that an earlier pass made.
    fn stored(&self, minicluster: &MiniCluster, live: &Live<'_>) -> Option<Certificate> {
        let (namespace, name) = (minicluster.namespace().unwrap_or_default(), minicluster.name_any());
        if self.settings.certificate_in_config_map {
            let scripts = live.read::<ConfigMap>(&namespace, &format!("{name}-entrypoint"))?;
            return Certificate::read(scripts.data?.get("curve.cert")?);
        }
        let secret = live.read::<Secret>(&namespace, &format!("{name}-curve"))?;
        Certificate::read(std::str::from_utf8(&secret.data?.get("curve.cert")?.0).ok()?)
    }

    /// Which of the names that this cluster needs belong to somebody else.
    async fn strangers(
        &self,
        minicluster: &MiniCluster,
        live: &Live<'_>,
    ) -> Result<BTreeSet<(&'static str, String)>, Error> {
        let Ok(cluster) = Cluster::of(minicluster, minicluster.spec.size, self.settings) else {
            return Ok(BTreeSet::new());
        };
        let mut services = vec![cluster.headless_name.clone()];
        for placed in &cluster.sidecars {
            let named = |is_taken| build::sidecar_service_name(&cluster, placed.container, is_taken);
            services.extend([named(false), named(true)]);
        }
        let uid = minicluster.uid();
        let mut strangers = BTreeSet::new();
        for name in services {
            strangers.extend(self.foreign::<Service>("Service", &uid, &cluster.namespace, name, live).await?);
        }
        let (namespace, name) = (&cluster.namespace, cluster.name.clone());
        strangers
            .extend(self.foreign::<ConfigMap>("ConfigMap", &uid, namespace, cluster.config_map_name(), live).await?);
        strangers.extend(self.foreign::<Secret>("Secret", &uid, namespace, cluster.secret_name(), live).await?);
        strangers.extend(self.foreign::<Pod>("Pod", &uid, namespace, cluster.services_name(), live).await?);
        strangers.extend(self.foreign::<Job>("Job", &uid, namespace, name, live).await?);
        Ok(strangers)
    }

    /// What does not carry our label is not watched, so it is looked at again each time.
    async fn foreign<K: Kind>(
        &self,
        kind: &'static str,
        uid: &Option<String>,
        namespace: &str,
        name: String,
        live: &Live<'_>,
    ) -> Result<Option<(&'static str, String)>, Error> {
        let foreign = |object: &DynamicObject| {
            let controller = object.owner_references().iter().find(|owner| owner.controller == Some(true));
            controller.map(|owner| &owner.uid) != uid.as_ref()
        };
        if live.get::<K>(namespace, &name).is_some_and(|object| foreign(&object) && !is_watched(&object)) {
            self.look_at(kind, &Key::new(namespace, &name), live).await?;
        }
        let is_foreign = live.get::<K>(namespace, &name).is_some_and(|object| foreign(&object));
        Ok(is_foreign.then_some((kind, name)))
    }

    /// Asks the server for one child.
    async fn look_at(&self, kind: &str, key: &Key, live: &Live<'_>) -> Result<(), Error> {
        let resource = match kind {
            "ConfigMap" => ApiResource::erase::<ConfigMap>(&()),
            "Secret" => ApiResource::erase::<Secret>(&()),
            "Service" => ApiResource::erase::<Service>(&()),
            "Pod" => ApiResource::erase::<Pod>(&()),
            "Job" => ApiResource::erase::<Job>(&()),
            _ => return Ok(()),
        };
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), &key.namespace, &resource);
        let found = api.get_opt(&key.name).await.map_err(|error| Error::api(format!("look at {kind} {key}"), error))?;
        match found {
            Some(object) => live.found(&resource, object),
            None => live.lost(&resource, key),
        }
        Ok(())
    }
}

fn is_watched(object: &DynamicObject) -> bool {
    object.labels().get(COMPONENT.0).is_some_and(|value| value == COMPONENT.1)
}

fn refusal(failure: &Failure) -> Refusal {
    Refusal { category: failure.error.category(), text: failure.error.to_string() }
}
