// SPDX-License-Identifier: Apache-2.0
//! The controller of `flux-framework.org` MiniClusters: Flux clusters in the pods of one indexed Job.
//!
//! The way through: [`cluster`] reads a MiniCluster once and refuses what cannot work, [`script`] writes what runs in
//! the pods, [`build`] makes the children, [`room`] counts what the nodes can hold, after the [`rivals`], [`gang`] and
//! [`plan`] decide, [`reasons`] has the words. [`observe`] reads from memory, with [`sight`] beside the children;
//! [`effects`] are the writes that make no child, and [`policies`] what the API server does for us.

pub mod build;
pub mod certificate;
pub mod cluster;
mod effects;
pub mod faults;
pub mod gang;
pub mod observe;
pub mod plan;
pub mod policies;
pub mod reasons;
pub mod rivals;
pub mod room;
pub mod script;
mod sight;
pub mod supply;
mod wake;

pub use cluster::{Cluster, GangThen, Settings};

use std::sync::Arc;

use bivouac_api::flux::{MiniCluster, MiniClusterStatus};
use bivouac_runtime::{
    Error, Plan, Reconciler, Runtime,
    capabilities::{Capabilities, Presence},
    reconcile::{self, Children, Live, Objects, Setup},
    registry::{Registration, rule},
};
use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ConfigMap, Pod, Secret, Service},
    rbac::v1::PolicyRule,
};
use kube::{
    Client, Resource,
    core::{DynamicObject, GroupVersionKind},
};
use serde_json::Value;

use observe::{Eyes, World};
use plan::Effect;
use sight::Sight;

/// Jobs should be there before the pods of others keep the server busy. Each pass holds its children as trees for a
/// moment, so more at once take memory.
const CONCURRENCY: u16 = 16;

/// The controller as the process knows it.
pub fn registration(settings: Settings) -> Registration {
    Registration {
        name: MiniClusters::NAME,
        about: "MiniClusters: HPC clusters made of pods",
        apis: || [vec![minicluster_api()], kueue_apis().into()].concat(),
        rbac,
        // The Go operator writes the same objects.
        rivals: &[("operator-system", "14dde902.flux-framework.org")],
        run: Arc::new(move |runtime| Box::pin(run(runtime, settings.clone()))),
    }
}

struct MiniClusters {
    settings: Settings,
    capabilities: Capabilities,
    client: Client,
    sight: Arc<Sight>,
    miniclusters: Objects<MiniCluster>,
}

impl Reconciler for MiniClusters {
    const NAME: &'static str = "miniclusters";
    /// The Go operator writes without server-side apply, under the name of its binary.
    const PREDECESSORS: &'static [&'static str] = &["manager"];
    type Kind = MiniCluster;
    type World = World;
    type Status = MiniClusterStatus;
    type Effect = Effect;

    async fn observe(&self, minicluster: &MiniCluster, live: &Live<'_>) -> Result<World, Error> {
        let eyes = Eyes {
            settings: &self.settings,
            sight: &self.sight,
            client: &self.client,
            kueue: self.kueue(),
            miniclusters: &self.miniclusters,
        };
        eyes.observe(minicluster, live).await
    }

    fn plan(&self, minicluster: &MiniCluster, world: &World, now: Timestamp) -> Plan<MiniClusterStatus, Effect> {
        plan::plan(minicluster, world, &self.settings, now)
    }

    async fn perform(&self, minicluster: &MiniCluster, effect: Effect) -> Result<(), Error> {
        effects::perform(&self.client, self.sight.ranks.mirror(), minicluster, effect).await
    }
}

impl MiniClusters {
    /// Any of its versions will do: the label on the Job is all that we need of it.
    fn kueue(&self) -> Presence {
        let versions = kueue_apis().map(|api| self.capabilities.presence(&api));
        match () {
            () if versions.contains(&Presence::Served) => Presence::Served,
            () if versions.contains(&Presence::Unknown) => Presence::Unknown,
            () => Presence::Absent,
        }
    }
}

async fn run(runtime: Runtime, settings: Settings) {
    let sight = Arc::new(Sight::new(&runtime));
    let (capabilities, client) = (runtime.capabilities.clone(), runtime.client.clone());
    reconcile::run(&runtime, move |miniclusters: Objects<MiniCluster>| {
        let ours = format!("{}={}", cluster::COMPONENT.0, cluster::COMPONENT.1);
        let children = Children::default()
            .kind::<ConfigMap>(Some(&ours))
            .kind::<Secret>(Some(&ours))
            .kind::<Service>(Some(&ours))
            .kind::<Pod>(Some(&ours))
            .reporting::<Job>(Some(&ours), trim_job);
        let triggers = wake::triggers(&sight, &miniclusters, &settings);
        // A file of many is a crowd: all of it should be there before its pods keep the server busy.
        let is_new = |minicluster: &MiniCluster| minicluster.status.is_none();
        let setup = Setup { children, triggers, concurrency: CONCURRENCY, is_new: Some(is_new) };
        (MiniClusters { settings, capabilities, client, sight, miniclusters }, setup)
    })
    .await;
}

/// How a Job counts its pods changes with each of them, and nobody here reads it.
fn trim_job(job: &mut DynamicObject) {
    if let Some(status) = job.data.get_mut("status").and_then(Value::as_object_mut) {
        status.retain(|field, _| ["conditions", "ready", "startTime"].contains(&field.as_str()));
    }
    reconcile::pack_whole(job);
}

fn minicluster_api() -> GroupVersionKind {
    GroupVersionKind::gvk(&MiniCluster::group(&()), &MiniCluster::version(&()), &MiniCluster::kind(&()))
}

/// Kueue is there when its queues are.
fn kueue_apis() -> [GroupVersionKind; 2] {
    ["v1beta1", "v1beta2"].map(|version| GroupVersionKind::gvk("kueue.x-k8s.io", version, "LocalQueue"))
}

/// Exactly what this controller does, and no more.
fn rbac() -> Vec<PolicyRule> {
    const READ: &[&str] = &["list", "watch"];
    const KEEP: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
    let rival = PolicyRule {
        resource_names: Some(vec!["14dde902.flux-framework.org".to_owned()]),
        ..rule(&["coordination.k8s.io"], &["leases"], &["get"])
    };
    vec![
        rule(&["flux-framework.org"], &["miniclusters"], &["list", "watch", "patch", "delete"]),
        rule(&["flux-framework.org"], &["miniclusters/status"], &["patch"]),
        // Some clusters ask for this before an owner reference may block the owner's deletion.
        rule(&["flux-framework.org"], &["miniclusters/finalizers"], &["update"]),
        // Pods: the services pod is a child, and ranks get a label.
        rule(&[""], &["configmaps", "secrets", "services", "pods"], KEEP),
        rule(&["batch"], &["jobs"], KEEP),
        // Ranks leave nodes that go away.
        rule(&[""], &["pods/eviction"], &["create"]),
        // What selects pods by their rank, and what nodes can hold.
        rule(&["networking.k8s.io"], &["networkpolicies"], READ),
        rule(&["policy"], &["poddisruptionbudgets"], READ),
        rule(&[""], &["nodes"], READ),
        rival,
    ]
}
