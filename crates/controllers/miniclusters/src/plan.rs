// SPDX-License-Identifier: Apache-2.0
//! What a MiniCluster asks for, and what that means right now. Pure: the only clever file of this controller.

use std::{collections::BTreeMap, time::Duration};

use bivouac_api::flux::{MiniCluster, MiniClusterStatus};
use bivouac_runtime::reconcile::{Category, Child, Note, Only, Plan};
use jiff::Timestamp;
use k8s_openapi::{
    api::{batch::v1::Job, core::v1::ConfigMap},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;

use crate::{
    build::{self, TEMPLATE_ANNOTATION},
    certificate::Certificate,
    cluster::{Cluster, Settings, maximum},
    gang::{gang, queue_of},
    observe::{Rank, World},
    reasons::Phase,
};

/// When to look again for a name that somebody else has: not all of them are watched.
const NAME_AGAIN: Duration = Duration::from_secs(60);
/// How long news may wait for better news. A start is quick or slow; only a slow one is worth a word of its own.
const FIRST_WORD: Duration = Duration::from_secs(5);
const NEXT_WORD: Duration = Duration::from_secs(1);
const PROGRESS: Duration = Duration::from_secs(10);
/// A ConfigMap holds no more, with some air for its metadata.
const CONFIG_MAP_MOST: usize = 1_000_000;
const KEPT: &str =
    "the pods stay as they were made: what changed in the spec since then takes effect in a new MiniCluster";

/// The closed list of writes that are no children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Bring `spec.size` back into its bounds, as clients of the original expect.
    SetSize { size: i32 },
    /// Label a pod with its rank.
    Label { pod: String, uid: String, index: String },
    /// Take a rank off a node that goes away. Its Job makes it anew elsewhere.
    Evict { pod: String, uid: String, index: String, node: String },
    /// Delete the MiniCluster itself, which asked for that.
    Delete,
}

type Planned = Plan<MiniClusterStatus, Effect>;

pub fn plan(minicluster: &MiniCluster, world: &World, settings: &Settings, now: Timestamp) -> Planned {
    let size = size(minicluster, world);
    let cluster = match Cluster::of(minicluster, size, settings) {
        Ok(cluster) => cluster,
        Err(faults) => return refused(minicluster, world, &Phase::Invalid { faults }),
    };
    let given = Certificate::read(&cluster.flux.curve_cert);
    let certificate = given.as_ref().unwrap_or(&world.certificate);
    let entrypoint = build::entrypoint(&cluster, certificate);
    if too_large(&entrypoint) {
        let faults = vec!["the scripts are too large for a ConfigMap: put long texts into a volume".to_owned()];
        return refused(minicluster, world, &Phase::Invalid { faults });
    }
    let gang = gang(&cluster, minicluster, world, now);
    let (children, kept) = children(&cluster, world, certificate, &entrypoint, gang.hold);
    let taken = |child: &Child| stranger(world, child);
    if let Some((kind, name)) = children.iter().find_map(taken) {
        let refusal = refused(minicluster, world, &Phase::NameTaken { kind, name });
        return Plan { requeue: Some(NAME_AGAIN), ..refusal };
    }
    if world.job.is_none() && has_ended(minicluster) {
        return ended(children);
    }
    let phase = match world.refusals.first() {
        // Somebody was faster; the next look decides.
        Some(refusal) if refusal.category != Category::Conflict => Phase::Refused { text: refusal.text.clone() },
        _ => phase(&cluster, world, gang.missing),
    };
    let mut effects = labels(world, settings);
    let drains = if phase.is_over() { Vec::new() } else { drains(world) };
    let denied = size != minicluster.spec.size && !phase.is_over();
    effects.extend(denied.then_some(Effect::SetSize { size }));
    let deeds: Vec<Note> = drains.iter().filter_map(drained).collect();
    effects.extend(drains);
    // Not before its end was told.
    let told = has_ended(minicluster);
    effects.extend((minicluster.spec.cleanup && phase.is_over() && told).then_some(Effect::Delete));
    Plan {
        stages: vec![children],
        // A child that cannot change is not named above; it must not count as surplus.
        prune: !kept,
        effects,
        deeds: denied.then(|| size_denied(minicluster, size)).into_iter().chain(deeds).collect(),
        status: Some(status(minicluster, size, cluster.max_size, world)),
        conditions: phase.conditions(kept.then_some(KEPT)),
        patience: patience(minicluster, &phase),
        events: events(minicluster, &phase),
        requeue: gang.again,
        ..Plan::default()
    }
}

/// The size to run with: the wish, within bounds. What is over keeps the size it had.
fn size(minicluster: &MiniCluster, world: &World) -> i32 {
    let wish = minicluster.spec.size;
    let live = world.job.as_ref().and_then(|job| job.spec.as_ref()?.parallelism);
    let over = world.job.as_ref().and_then(ending).is_some();
    match live {
        Some(live) if over => live,
        Some(live) if wish < 1 => live,
        _ => wish.min(maximum(minicluster)).max(1),
    }
}

/// What the MiniCluster last said of itself: the reason, and whether it was over.
fn said(minicluster: &MiniCluster) -> Option<(&str, bool)> {
    let conditions = &minicluster.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|one| one.type_ == "Ready")?;
    let over = conditions.iter().any(|one| one.type_ == "JobFinished" && one.status == "True");
    Some((&ready.reason, over))
}

/// Every transition is told. That a new cluster starts is none.
fn events(minicluster: &MiniCluster, phase: &Phase) -> Vec<Note> {
    let begins = said(minicluster).is_none() && matches!(phase, Phase::Starting { .. });
    (!begins).then(|| phase.event()).into_iter().collect()
}

fn patience(minicluster: &MiniCluster, phase: &Phase) -> Duration {
    let is_known =
        minicluster.status.as_ref().is_some_and(|it| it.observed_generation == minicluster.metadata.generation);
    match (phase, said(minicluster)) {
        (Phase::Finished | Phase::Failed { exit_code: Some(_), .. } | Phase::Invalid { .. }, _) => Duration::ZERO,
        (Phase::Starting { .. }, None) => FIRST_WORD,
        (_, Some((reason, _))) if reason == phase.reason() && is_known => PROGRESS,
        _ => NEXT_WORD,
    }
}

/// Its Job was there, ended and is gone. Work that is done is not done again.
fn ended(mut children: Vec<Child>) -> Planned {
    children.retain(|child| child.resource.kind != "Job");
    Plan { stages: vec![children], prune: false, ..Plan::default() }
}

/// All children, in one round; and whether some of them stay behind the spec because they cannot change.
fn children(
    cluster: &Cluster<'_>,
    world: &World,
    certificate: &Certificate,
    entrypoint: &ConfigMap,
    hold: bool,
) -> (Vec<Child>, bool) {
    let mut children = vec![Child::of(entrypoint), Child::of(&build::headless_service(cluster))];
    if !cluster.settings.certificate_in_config_map {
        children.push(Child::of(&build::certificate(cluster, certificate)));
    }
    for placed in cluster.sidecars.iter().filter(|placed| !placed.container.ports.is_empty()) {
        let taken = world.strangers.contains(&("Service", placed.container.name.clone()));
        children.push(Child::of(&build::sidecar_service(cluster, placed.container, taken)));
    }
    let mut kept = false;
    if !cluster.spec.services.is_empty() {
        let wanted = build::services_pod(cluster);
        let same = |live: &k8s_openapi::api::core::v1::Pod| hash(&live.metadata) == hash(&wanted.metadata);
        match &world.services_pod {
            Some(live) if !same(live) || live.metadata.deletion_timestamp.is_some() => kept = true,
            _ => children.push(Child::of(&wanted)),
        }
    }
    let mut wanted = build::job(cluster, hold);
    let queued = queue_of(cluster.spec, world.kueue).is_some();
    match &world.job {
        Some(live) if live.metadata.deletion_timestamp.is_some() => kept = true,
        Some(live) if hash(&live.metadata) != hash(&wanted.metadata) => {
            kept = true;
            keep_template(&mut wanted, live);
            children.push(Child::of(&wanted));
        }
        Some(live) if queued => {
            leave_tolerations(&mut wanted, live);
            children.push(Child::of(&wanted));
        }
        _ => children.push(Child::of(&wanted)),
    }
    // Two passes must never bring two keys, and nothing of others is taken.
    let children = children.into_iter().map(|child| child.only(Only::IfOurs)).collect();
    (children, kept)
}

fn hash(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Option<&String> {
    meta.annotations.as_ref()?.get(TEMPLATE_ANNOTATION)
}

/// What Kubernetes never lets change stays as it is; the rest of the Job follows the spec.
fn keep_template(wanted: &mut Job, live: &Job) {
    let note = hash(&live.metadata).cloned();
    wanted.metadata.annotations = note.map(|note| BTreeMap::from([(TEMPLATE_ANNOTATION.to_owned(), note)]));
    if let (Some(wanted), Some(live)) = (&mut wanted.spec, &live.spec) {
        wanted.template = live.template.clone();
        wanted.completion_mode.clone_from(&live.completion_mode);
        wanted.success_policy.clone_from(&live.success_policy);
        wanted.pod_failure_policy.clone_from(&live.pod_failure_policy);
    }
}

/// A queue chooses nodes by the template. What it adds there is its own, for we do not name it. Only tolerations are a
/// single field, which belongs to whoever wrote it last.
fn leave_tolerations(wanted: &mut Job, live: &Job) {
    let wanted = wanted.spec.as_mut().and_then(|job| job.template.spec.as_mut());
    let live = live.spec.as_ref().and_then(|job| job.template.spec.as_ref());
    if let (Some(wanted), Some(live)) = (wanted, live) {
        wanted.tolerations.take_if(|ours| live.tolerations.as_ref() != Some(ours));
    }
}

fn stranger(world: &World, child: &Child) -> Option<(&'static str, String)> {
    world.strangers.iter().find(|(kind, name)| *kind == child.resource.kind && *name == child.key.name).cloned()
}

fn too_large(entrypoint: &ConfigMap) -> bool {
    let data = entrypoint.data.iter().flatten();
    data.map(|(key, text)| key.len() + text.len()).sum::<usize>() > CONFIG_MAP_MOST
}

pub fn is_suspended(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true)
}

/// Where the cluster is, from what its Job says.
fn phase(cluster: &Cluster<'_>, world: &World, missing: Option<String>) -> Phase {
    if let Some(room) = missing {
        return Phase::Held { room };
    }
    let ready = world.job.as_ref().and_then(|job| job.status.as_ref()?.ready).unwrap_or_default();
    let needed = cluster.quorum().unwrap_or(cluster.size);
    match &world.job {
        Some(job) => match ending(job) {
            Some(Ending { well: true, .. }) => Phase::Finished,
            Some(Ending { reason, message, .. }) => Phase::Failed { reason, message, exit_code: told_exit_code(world) },
            None if is_suspended(job) => Phase::Suspended { queue: queue_of(cluster.spec, world.kueue).cloned() },
            None if ready >= needed => Phase::Up { ready, size: cluster.size },
            None => Phase::Starting { ready, needed },
        },
        None => Phase::Starting { ready, needed },
    }
}

pub fn is_over(job: &Job) -> bool {
    ending(job).is_some()
}

/// By its own words.
pub fn has_ended(minicluster: &MiniCluster) -> bool {
    said(minicluster).is_some_and(|(_, over)| over)
}

struct Ending {
    well: bool,
    reason: String,
    message: String,
    at: Option<Time>,
}

/// The verdict counts as soon as the Job has it, not only when its last pod is gone.
fn ending(job: &Job) -> Option<Ending> {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.filter(|condition| condition.status == "True").find_map(|condition| match condition.type_.as_str() {
        "SuccessCriteriaMet" | "FailureTarget" | "Complete" | "Failed" => Some(Ending {
            well: ["SuccessCriteriaMet", "Complete"].contains(&condition.type_.as_str()),
            reason: condition.reason.clone().unwrap_or_default(),
            message: condition.message.clone().unwrap_or_default(),
            at: condition.last_transition_time.clone(),
        }),
        _ => None,
    })
}

/// What a lead broker failed with.
fn told_exit_code(world: &World) -> Option<i32> {
    let leads = world.ranks.iter().filter(|rank| rank.index == "0");
    leads.filter_map(|rank| rank.exit_code).find(|code| *code != 0)
}

/// Pods whose rank is not written on them, or is written wrong: the lead always has it, the others where somebody
/// selects on it. Where our policy is enforced the lead was made with it.
fn labels(world: &World, settings: &Settings) -> Vec<Effect> {
    let all = settings.label_all_pods || world.is_index_selected;
    let wrong = world.ranks.iter().filter(|rank| {
        let wanted = all || rank.index == "0" || rank.label.is_some();
        wanted && rank.label.as_ref() != Some(&rank.index)
    });
    wrong
        .map(|rank| Effect::Label { pod: rank.pod.clone(), uid: rank.uid.clone(), index: rank.index.clone() })
        .collect()
}

/// Ranks on nodes that go away soon. The lead stays as long as it can: its end is the end of the work.
fn drains(world: &World) -> Vec<Effect> {
    let leaving = |rank: &&Rank| rank.index != "0" && !rank.is_ending && rank.exit_code.is_none();
    let evict = |rank: &Rank| {
        let node = rank.node.clone().filter(|node| world.going.contains(node))?;
        Some(Effect::Evict { pod: rank.pod.clone(), uid: rank.uid.clone(), index: rank.index.clone(), node })
    };
    world.ranks.iter().filter(leaving).filter_map(evict).collect()
}

fn drained(effect: &Effect) -> Option<Note> {
    let Effect::Evict { index, node, .. } = effect else { return None };
    let text = format!("rank {index} leaves node {node}, which goes away; it comes back on another one");
    Some(Note { warning: true, reason: "RankDrained", action: "Drain", text })
}

fn size_denied(minicluster: &MiniCluster, size: i32) -> Note {
    let (wish, most) = (minicluster.spec.size, maximum(minicluster));
    let text = format!("size {wish} is not between 1 and {most}; it is set back to {size}");
    Note { warning: true, reason: "SizeDenied", action: "Resize", text }
}

fn status(minicluster: &MiniCluster, size: i32, maximum_size: i32, world: &World) -> MiniClusterStatus {
    let told = minicluster.status.clone().unwrap_or_default();
    let job = world.job.as_ref().and_then(|job| job.status.as_ref());
    let ending = world.job.as_ref().and_then(ending);
    let exit_code = match &ending {
        Some(Ending { well: true, .. }) => Some(0),
        // Its pod may be gone by now.
        Some(_) => told_exit_code(world).or(told.exit_code),
        None => None,
    };
    MiniClusterStatus {
        ready: if ending.is_some() { 0 } else { job.and_then(|job| job.ready).unwrap_or_default() },
        start_time: job.and_then(|job| job.start_time.clone()),
        completion_time: ending.and_then(|ending| ending.at),
        exit_code,
        observed_generation: minicluster.metadata.generation,
        size,
        maximum_size,
        selector: format!("hpa-selector={}", minicluster.name_any()),
        ..MiniClusterStatus::default()
    }
}

/// Nothing is made, changed or removed; the words say why.
fn refused(minicluster: &MiniCluster, world: &World, phase: &Phase) -> Planned {
    let live = world.job.as_ref().and_then(|job| job.spec.as_ref()?.parallelism).unwrap_or_default();
    // A maximum that was never in use is not fixed.
    let known = minicluster.status.as_ref().map_or(0, |status| status.maximum_size);
    Plan {
        prune: false,
        status: Some(status(minicluster, live, known, world)),
        conditions: phase.conditions(None),
        patience: patience(minicluster, phase),
        events: vec![phase.event()],
        ..Plan::default()
    }
}
