// SPDX-License-Identifier: Apache-2.0
//! Which other clusters take room before one. Everybody comes to the same order: who has started, then who is older.

use bivouac_api::flux::MiniCluster;
use bivouac_runtime::capabilities::Presence;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;

use crate::{
    build,
    cluster::{Cluster, Settings},
    gang::{is_gang, queue_of},
    plan::{has_ended, is_over, is_suspended},
    room::Rival,
};

/// Another cluster, as far as it is known.
#[derive(Debug)]
pub struct Other<'a> {
    pub minicluster: &'a MiniCluster,
    pub job: Option<Job>,
    /// Pods that have a node.
    pub placed: i32,
}

/// The rivals of one cluster, those first that are served first.
pub fn before(one: &MiniCluster, mut others: Vec<Other<'_>>, settings: &Settings, kueue: Presence) -> Vec<Rival> {
    others.sort_by_cached_key(|other| age(other.minicluster));
    let rivals = others.iter().filter_map(|other| {
        let has_started = other.job.as_ref().is_some_and(|job| !is_suspended(job));
        let waits = || {
            let minicluster = other.minicluster;
            is_gang(minicluster, settings)
                && queue_of(&minicluster.spec, kueue).is_none()
                && minicluster.metadata.deletion_timestamp.is_none()
                && age(minicluster) < age(one)
        };
        if other.is_over() || !(has_started || waits()) {
            return None;
        }
        let cluster = Cluster::of(other.minicluster, other.size(), settings).ok()?;
        let pod = build::pod_template(&cluster).spec?;
        let count = if has_started { cluster.size - other.placed } else { cluster.size };
        (count > 0).then_some(Rival { pod, count, has_started })
    });
    let (started, waiting): (Vec<_>, Vec<_>) = rivals.partition(|rival| rival.has_started);
    [started, waiting].concat()
}

impl Other<'_> {
    fn size(&self) -> i32 {
        let live = self.job.as_ref().and_then(|job| job.spec.as_ref()?.parallelism);
        live.unwrap_or(self.minicluster.spec.size)
    }

    fn is_over(&self) -> bool {
        self.job.as_ref().map_or_else(|| has_ended(self.minicluster), is_over)
    }
}

fn age(minicluster: &MiniCluster) -> (Option<jiff::Timestamp>, Option<String>, String) {
    (minicluster.creation_timestamp().map(|time| time.0), minicluster.namespace(), minicluster.name_any())
}
