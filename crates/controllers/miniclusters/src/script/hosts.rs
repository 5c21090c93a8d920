// SPDX-License-Identifier: Apache-2.0
//! All brokers by host name, in the order of their ranks.

use bivouac_api::flux::{BurstCluster, Bursting};

use crate::cluster::Cluster;

/// As Flux writes it: `flux-sample-[0-3]`.
pub fn hostlist(cluster: &Cluster<'_>) -> String {
    let Bursting { hostlist, clusters, .. } = cluster.flux.bursting.clone().unwrap_or_default();
    if !hostlist.is_empty() {
        return hostlist;
    }
    let mut hosts = match cluster.leader() {
        Some(leader) if leader.size > 1 => format!("{},{}", leader.address, range(&leader.name, 1, leader.size)),
        Some(leader) => leader.address.clone(),
        None => range(&cluster.name, 0, cluster.max_size),
    };
    for (index, BurstCluster { name, size }) in clusters.into_iter().enumerate() {
        let name = if name.is_empty() { format!("burst-{index}") } else { name };
        let size = if size == 0 { cluster.spec.size } else { size };
        hosts = format!("{hosts},{}", range(&name, 0, size));
    }
    hosts
}

/// The hosts after the first, where that one is described on its own.
pub(super) fn others(hostlist: &str) -> &str {
    hostlist.split_once(',').map_or("", |(_, others)| others)
}

fn range(name: &str, from: i32, end: i32) -> String {
    let last = end.saturating_sub(1);
    if from == last { format!("{name}-[{from}]") } else { format!("{name}-[{from}-{last}]") }
}
