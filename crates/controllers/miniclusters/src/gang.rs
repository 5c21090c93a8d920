// SPDX-License-Identifier: Apache-2.0
//! All ranks together or none: whether a Job is held back. Pure, a part of the plan.

use std::time::Duration;

use bivouac_api::flux::{MiniCluster, MiniClusterSpec};
use bivouac_runtime::capabilities::Presence;
use jiff::Timestamp;
use kube::ResourceExt;

use crate::{
    build,
    cluster::{Cluster, GangThen, Settings},
    observe::World,
    plan::is_suspended,
    room::{Ranks, room},
};

/// Set to `"true"` on a MiniCluster: its pods start together or not at all.
pub const GANG_ANNOTATION: &str = "bivouac.dev/gang";
/// With this label on the Job, Kueue decides when it starts.
const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// When to look whether those who come first are still there.
const RIVAL_AGAIN: Duration = Duration::from_secs(10);

/// Whether the Job is held back now, what is missing, and when to decide again.
#[derive(Debug, Default)]
pub struct Gang {
    pub hold: bool,
    pub missing: Option<String>,
    pub again: Option<Duration>,
}

/// Whether all pods of this cluster start together or not at all.
pub fn is_gang(minicluster: &MiniCluster, settings: &Settings) -> bool {
    let asked = minicluster.annotations().get(GANG_ANNOTATION).map(String::as_str);
    asked.map_or(settings.gang, |asked| asked == "true")
}

/// The queue that decides when the Job starts. Without Kueue its label means nothing.
pub fn queue_of(spec: &MiniClusterSpec, kueue: Presence) -> Option<&String> {
    spec.job_labels.get(QUEUE_LABEL).filter(|_| kueue != Presence::Absent)
}

pub fn gang(cluster: &Cluster<'_>, minicluster: &MiniCluster, world: &World, now: Timestamp) -> Gang {
    let started = world.job.as_ref().is_some_and(|job| !is_suspended(job));
    if !is_gang(minicluster, &cluster.settings) || queue_of(cluster.spec, world.kueue).is_some() || started {
        return Gang::default();
    }
    let template = build::pod_template(cluster).spec.unwrap_or_default();
    let room = room(&world.pods, &world.nodes, &world.rivals, Ranks { pod: &template, count: cluster.size });
    if room.is_enough() {
        return Gang::default();
    }
    let since = minicluster.creation_timestamp().map_or(now, |time| time.0);
    let left = cluster.settings.gang_hold.saturating_sub(now.max(since).duration_since(since).unsigned_abs());
    match cluster.settings.gang_then {
        GangThen::Release if left.is_zero() => Gang::default(),
        GangThen::Release => Gang { hold: true, missing: Some(room.sentence()), again: Some(left) },
        // A change of a node or a pod brings the next look. A rival may leave without either.
        GangThen::Wait => {
            Gang { hold: true, missing: Some(room.sentence()), again: (room.rivals > 0).then_some(RIVAL_AGAIN) }
        }
    }
}
