// SPDX-License-Identifier: Apache-2.0
//! Words for the command lines of Flux. They are read by the `words` function of the scripts.

use super::quote::quote;
use crate::cluster::Cluster;

/// Options of every broker, in the order that people know from their logs.
pub fn broker_options(cluster: &Cluster<'_>) -> String {
    let flux = &cluster.flux;
    let config = format!("{}/config", cluster.view.mount_path);
    // A plain value stays as people know it; anything else is one word all the same.
    let set = |name: &str, value: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:%@+,=".contains(c);
        let option = format!("-S{name}={value}");
        if value.chars().all(plain) { option } else { quote(&option) }
    };
    let level = match flux.log_level {
        _ if cluster.logging.quiet => 0,
        0 => 6,
        level => level,
    };
    let quorum = cluster.quorum().map(|count| set("broker.quorum", &count.to_string()));
    let options = [
        Some(set("cron.directory", &format!("{config}/etc/flux/system/cron.d"))),
        Some(set("tbon.fanout", "256")),
        Some(set("rundir", &format!("{config}/run/flux"))),
        cluster.spec.interactive.then(|| "-Sbroker.rc2_none".to_owned()),
        Some(set("statedir", &format!("{config}/var/lib/flux"))),
        (!flux.disable_socket).then(|| set("local-uri", &format!("local://{config}/run/flux/local"))),
        (!flux.connect_timeout.is_empty()).then(|| set("tbon.connect_timeout", &flux.connect_timeout)),
        (!flux.topology.is_empty()).then(|| set("tbon.topo", &flux.topology)),
        quorum,
        cluster.logging.zeromq.then(|| set("tbon.zmqdebug", "1")),
        Some(set("log-stderr-level", &level.to_string())),
        Some(set("log-stderr-mode", "local")),
    ];
    options.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// How much the work asks for, and the user's own flags.
pub fn submit_flags(cluster: &Cluster<'_>) -> String {
    let (size, tasks) = (cluster.size, cluster.spec.tasks);
    let mut flags = match tasks {
        0 => format!("-N {size}"),
        tasks if tasks >= size => format!("-N {size} -n{tasks}"),
        tasks => format!("-n{tasks}"),
    };
    if !cluster.flux.option_flags.is_empty() {
        flags = format!("{flags} {}", cluster.flux.option_flags);
    }
    if cluster.logging.debug { flags + " -vvv" } else { flags }
}
