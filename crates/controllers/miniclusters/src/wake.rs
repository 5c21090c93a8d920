// SPDX-License-Identifier: Apache-2.0
//! Which MiniClusters to look at again when something changes that is no child of theirs.

use std::{sync::Arc, time::Duration};

use bivouac_api::flux::MiniCluster;
use bivouac_runtime::{
    mirror::{Change, Mirror},
    reconcile::Objects,
};
use futures::{Stream, StreamExt, stream::BoxStream};
use kube::{Resource, ResourceExt, runtime::reflector::ObjectRef};

use crate::{
    cluster::Settings,
    gang::is_gang,
    observe::Rank,
    sight::{RankPod, Sight},
    supply::{Machine, Occupant},
};

/// Room comes and goes with every pod of the cluster. Those who wait for it look no more often than this.
const ROOM_PAUSE: Duration = Duration::from_secs(1);

type Woken = ObjectRef<MiniCluster>;

pub fn triggers(
    sight: &Arc<Sight>,
    miniclusters: &Objects<MiniCluster>,
    settings: &Settings,
) -> Vec<BoxStream<'static, Woken>> {
    let is_read = is_index_read(sight, settings);
    let ranks =
        sight.ranks.mirror().changes().filter_map(move |change| std::future::ready(of_rank(&change, is_read())));
    let room = futures::stream::select(
        sight.machines.mirror().changes().filter(|change| std::future::ready(offers_more(change))).map(drop),
        sight.occupants.mirror().changes().filter(|change| std::future::ready(frees(change))).map(drop),
    );
    vec![
        ranks.boxed(),
        misnamed(sight).boxed(),
        leaving(sight.clone()),
        waiting(calmly(room.boxed()), miniclusters.clone(), settings.clone()).boxed(),
        namesakes(sight.services.mirror(), miniclusters),
        namesakes(sight.policies.mirror(), miniclusters),
        namesakes(sight.budgets.mirror(), miniclusters),
    ]
}

/// Whether somebody reads `job-index`, as far as one knows by now.
fn is_index_read(sight: &Sight, settings: &Settings) -> impl Fn() -> bool + Send + 'static {
    let (services, policies) = (sight.services.mirror().clone(), sight.policies.mirror().clone());
    let (budgets, all) = (sight.budgets.mirror().clone(), settings.label_all_pods);
    move || all || !services.is_empty() || !policies.is_empty() || !budgets.is_empty()
}

/// Pods of a Job matter when they come without a label that they should have, when their label changes, and when the
/// lead ends, for its exit code. The rest is in the status of the Job.
fn of_rank(change: &Change<RankPod>, is_index_read: bool) -> Option<Woken> {
    let after = change.after.as_ref()?;
    let (rank, before) = (after.rank()?, change.before.as_ref().and_then(|before| before.rank()));
    let is_lead = rank.index == "0";
    let is_bare = |rank: &Rank| rank.label.as_ref().map_or(is_lead || is_index_read, |label| *label != rank.index);
    let matters = match &before {
        None => is_bare(&rank) || (is_lead && rank.exit_code.is_some()),
        Some(before) => rank.label != before.label || (is_lead && rank.exit_code != before.exit_code),
    };
    matters.then(|| of_pod(after))?
}

/// Those with a pod that carries the rank of another one.
fn misnamed(sight: &Sight) -> impl Stream<Item = Woken> + Send + use<> {
    sight.misnamed.mirror().changes().filter_map(|change| std::future::ready(change.after.and_then(|pod| of_pod(&pod))))
}

/// Those that have pods on a node of which one hears that it goes away.
fn leaving(sight: Arc<Sight>) -> BoxStream<'static, Woken> {
    let changes = sight.leaving.mirror().changes();
    let woken = move |node: Arc<Machine>| {
        let sight = sight.clone();
        async move {
            let (pods, node) = (sight.ranks.look_at_all().await.all(), node.name_any());
            let on_it = pods.iter().filter(|pod| pod.node() == Some(&*node));
            futures::stream::iter(on_it.filter_map(|pod| of_pod(pod)).collect::<Vec<_>>())
        }
    };
    let begins = |change: Change<Machine>| change.after.filter(|_| change.before.is_none());
    changes.filter_map(move |change| std::future::ready(begins(change))).then(woken).flatten().boxed()
}

fn of_pod(pod: &RankPod) -> Option<Woken> {
    Some(ObjectRef::new(pod.job()?).within(&pod.namespace()?))
}

fn offers_more(change: &Change<Machine>) -> bool {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => !before.offers_as(after),
        (None, Some(_)) => true,
        _ => false,
    }
}

fn frees(change: &Change<Occupant>) -> bool {
    change.after.as_ref().is_none_or(|after| !after.is_there)
}

/// One tick for everything that happens within a pause, at its end.
fn calmly(ticks: BoxStream<'static, ()>) -> impl Stream<Item = ()> + Send {
    futures::stream::unfold(ticks, |mut ticks| async move {
        ticks.next().await?;
        let end = tokio::time::Instant::now() + ROOM_PAUSE;
        while let Ok(Some(())) = tokio::time::timeout_at(end, ticks.next()).await {}
        Some(((), ticks))
    })
}

/// Those that may be held back for want of room.
fn waiting(
    ticks: impl Stream<Item = ()> + Send,
    miniclusters: Objects<MiniCluster>,
    settings: Settings,
) -> impl Stream<Item = Woken> + Send {
    ticks.flat_map(move |()| {
        let held = |one: &MiniCluster| is_gang(one, &settings) && !has_started(one);
        futures::stream::iter(references(&miniclusters, held))
    })
}

/// By its own words. They may be late, so who did not speak yet has not started.
fn has_started(minicluster: &MiniCluster) -> bool {
    let mut conditions = minicluster.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|one| ["JobRunning", "JobFinished"].contains(&one.type_.as_str()) && one.status == "True")
}

/// All MiniClusters of the namespace in which something began or ceased to select by rank.
fn namesakes<K>(mirror: &Arc<Mirror<K>>, miniclusters: &Objects<MiniCluster>) -> BoxStream<'static, Woken>
where
    K: Resource + Clone + Send + Sync + 'static,
{
    let miniclusters = miniclusters.clone();
    let woken = move |change: Change<K>| {
        let namespace = change.after.as_ref().or(change.before.as_ref()).and_then(|one| one.namespace());
        futures::stream::iter(references(&miniclusters, |one| one.namespace() == namespace))
    };
    mirror.changes().flat_map(woken).boxed()
}

fn references(miniclusters: &Objects<MiniCluster>, wanted: impl Fn(&MiniCluster) -> bool) -> Vec<Woken> {
    let reference = |one: &MiniCluster| Some(ObjectRef::new(&one.name_any()).within(&one.namespace()?));
    miniclusters.filter(wanted).iter().filter_map(|guard| guard.0.as_ref().ok()).filter_map(reference).collect()
}
