// SPDX-License-Identifier: Apache-2.0
//! The configuration of the brokers, in TOML.

use std::fmt::Write as _;

use super::hosts::{hostlist, others};
use crate::cluster::Cluster;

pub const PORT: i32 = 8050;

/// The user's own text, or the one that fits this cluster.
pub fn broker_config(cluster: &Cluster<'_>) -> String {
    if !cluster.flux.broker_config.is_empty() {
        return cluster.flux.broker_config.clone();
    }
    let config = format!("{}/config", cluster.view.mount_path);
    let connect =
        format!("tcp://%h.{}.{}.svc.{}:%p", cluster.headless_name, cluster.namespace, cluster.settings.cluster_domain);
    let policy = cluster.flux.scheduler.as_ref().map(|scheduler| scheduler.queue_policy.as_str()).unwrap_or_default();
    format!(
        "[access]\nallow-guest-user = true\nallow-root-owner = true\n\n\
         [resource]\npath = {}\n\n\
         [bootstrap]\ncurve_cert = {}\ndefault_port = {PORT}\ndefault_bind = \"tcp://*:%p\"\ndefault_connect = {}\n\
         hosts = [\n{}]\n\n\
         [archive]\ndbpath = {}\nperiod = \"1m\"\nbusytimeout = \"50s\"\n\n\
         [sched-fluxion-qmanager]\nqueue-policy = {}\n",
        toml(&format!("{config}/etc/flux/system/R")),
        toml(&format!("{config}/curve/curve.cert")),
        toml(&connect),
        hosts(cluster),
        toml(&format!("{config}/var/lib/flux/job-archive.sqlite")),
        toml(if policy.is_empty() { "fcfs" } else { policy }),
    )
}

/// One entry for all, or the lead of another cluster first, by its address.
fn hosts(cluster: &Cluster<'_>) -> String {
    let all = hostlist(cluster);
    let entry = |hosts: &str| format!("  {{ host = {} }},\n", toml(hosts));
    let Some(leader) = cluster.leader() else { return entry(&all) };
    let port = if leader.port == 0 { PORT } else { leader.port };
    let lead = format!(
        "  {{ host = {}, bind = {}, connect = {} }},\n",
        toml(&leader.address),
        toml(&format!("tcp://*:{port}")),
        toml(&format!("tcp://{}:{port}", leader.address)),
    );
    match others(&all) {
        "" => lead,
        others => lead + &entry(others),
    }
}

/// A basic string of TOML.
fn toml(text: &str) -> String {
    let mut quoted = String::from('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
