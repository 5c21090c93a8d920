// SPDX-License-Identifier: Apache-2.0
//! The texts that run in the pods. Every script is a head of quoted values and a body that is the same for everybody: no
//! text of a user stands in a script other than as a value. Blocks that the user wrote for the shell go through `eval`,
//! so that a slip in them cannot change the meaning of the lines around them.

mod broker;
mod files;
mod hosts;
mod options;
pub mod quote;

pub use broker::broker_config;
pub use hosts::hostlist;
pub use options::{broker_options, submit_flags};

use std::fmt::Write as _;

use bivouac_api::flux::Container;
use quote::{assign, quote};

use crate::cluster::{Cluster, Mode, Placed};

const WORDS: &str = include_str!("words.sh");
const VIEW: &str = include_str!("view.sh");
const INIT: &str = include_str!("init.sh");
const RUNNER: &str = include_str!("runner.sh");
const BROKER: &str = include_str!("broker.sh");
const SIDECAR: &str = include_str!("sidecar.sh");

/// The parts that are the same for everybody, by name: goldens leave them out.
pub const BODIES: [(&str, &str); 6] = [
    ("words.sh", WORDS),
    ("view.sh", VIEW),
    ("init.sh", INIT),
    ("runner.sh", RUNNER),
    ("broker.sh", BROKER),
    ("sidecar.sh", SIDECAR),
];

/// Where the scripts and the certificate are mounted.
pub const FOLDER: &str = "/flux_operator";
/// The file that the init container runs.
pub const INIT_FILE: &str = "flux-init.sh";

/// The runner's script in the ConfigMap.
pub fn runner_key(cluster: &Cluster<'_>) -> String {
    format!("wait-{}", cluster.runner.index)
}

/// The script of a container beside the runner; one that keeps its own entry point has none.
pub fn sidecar_key(placed: Placed<'_>) -> Option<String> {
    (!placed.container.no_wrap_entrypoint).then(|| format!("start-{}", placed.index))
}

/// The file that a script of the ConfigMap becomes.
pub fn file(key: &str) -> String {
    format!("{key}.sh")
}

/// Prepares the shared directory of one pod.
pub fn init(cluster: &Cluster<'_>) -> String {
    let mut head = head("init", cluster);
    head += &assign("hosts", &hostlist(cluster));
    head += &assign("op_config", &broker_config(cluster));
    if cluster.is_view_mounted {
        head += &assign("op_mounted", "1");
    }
    head + INIT
}

/// Runs the broker of a pod, and on the lead the work.
pub fn runner(cluster: &Cluster<'_>) -> String {
    let container = cluster.runner.container;
    let commands = container.commands.clone().unwrap_or_default();
    let mut head = head("runner", cluster);
    let archive = cluster.spec.archive.as_ref().map(|archive| archive.path.as_str()).unwrap_or_default();
    let restore = quote(&format!("-Scontent.restore={archive}"));
    let dump = quote(&format!("-Scontent.dump={archive}"));
    let submit = &cluster.flux.submit_command;
    for (name, value) in [
        ("op_strict", flag(cluster.logging.strict)),
        ("op_timing", flag(cluster.logging.timed)),
        ("op_python", &cluster.view.python_path),
        ("op_simple", flag(cluster.flux.scheduler.as_ref().is_some_and(|scheduler| scheduler.simple))),
        ("op_complete", flag(cluster.flux.complete_workers)),
        ("op_mode", mode(cluster.mode())),
        ("op_init", &commands.init),
        ("op_pre", &commands.pre),
        ("op_broker_pre", &commands.broker_pre),
        ("op_worker_pre", &commands.worker_pre),
        ("op_post", &commands.post),
        ("op_prefix", &commands.prefix),
        ("op_script", &commands.script),
        ("op_submit", if submit.is_empty() { "flux submit" } else { submit }),
        ("op_flags", &submit_flags(cluster)),
        ("op_wrap", &cluster.flux.wrap),
        ("op_logs", if container.logs.is_empty() { "/tmp/fluxout" } else { &container.logs }),
        ("op_archive", archive),
        ("op_restore", &restore),
        ("op_dump", &dump),
        ("op_batch", &batch(container)),
        ("op_flux_view", &files::flux_view(cluster)),
        ("op_flux_connect", &files::flux_connect(cluster)),
        ("op_load_fluxion", files::LOAD_FLUXION),
        ("curvesrc", &format!("{FOLDER}/curve.cert")),
        ("mainHost", &main_host(cluster)),
        ("brokerOptions", &broker_options(cluster)),
        ("command", &container.command),
    ] {
        head += &assign(name, value);
    }
    head + WORDS + RUNNER + VIEW + BROKER
}

/// Wraps the command of a container beside the runner.
pub fn sidecar(cluster: &Cluster<'_>, placed: Placed<'_>) -> String {
    let commands = placed.container.commands.clone().unwrap_or_default();
    let mut head = head("sidecar", cluster);
    // Without a socket there is nothing to wait for.
    let waits = !cluster.flux.no_wait_socket && !cluster.flux.disable_socket;
    for (name, value) in [
        ("op_strict", flag(cluster.logging.strict)),
        ("op_python", cluster.view.python_path.as_str()),
        ("op_wait", flag(waits)),
        ("op_init", &commands.init),
        ("op_service_pre", &commands.service_pre),
        ("op_post", &commands.post),
        ("op_script", &commands.script),
        ("op_file", &format!("/tmp/custom-entrypoint-{}.sh", placed.index)),
        ("command", &placed.container.command),
    ] {
        head += &assign(name, value);
    }
    // The paths are found inside the child, after the block that may prepare them.
    head + "op_paths() {\n" + VIEW + "}\n" + SIDECAR
}

/// What every script begins with.
fn head(what: &str, cluster: &Cluster<'_>) -> String {
    let mut head = format!("#!/bin/bash\n# The {what} of a MiniCluster, made by Bivouac. Edits are lost.\n");
    // Blocks of the user may use what looks unused here, quoted texts are not meant for us, and traps call functions.
    head += "# shellcheck disable=SC1003,SC2016,SC2034,SC2317\n";
    head += &assign("op_quiet", flag(cluster.logging.quiet));
    head += &assign("op_view", flag(!cluster.view.disable));
    head += &assign("viewbase", &cluster.view.mount_path);
    head
}

/// The host of rank 0. In a cluster that joins another one it is none of ours.
fn main_host(cluster: &Cluster<'_>) -> String {
    format!("{}-0", cluster.leader().map_or(cluster.name.as_str(), |leader| leader.name.as_str()))
}

fn flag(set: bool) -> &'static str {
    if set { "1" } else { "" }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Submit => "submit",
        Mode::Launcher => "launcher",
        Mode::Batch => "batch",
    }
}

/// A job for every line, each with its own output files. The script fails if one of them does.
fn batch(container: &Container) -> String {
    match container {
        Container { batch: false, .. } => String::new(),
        Container { batch_raw: true, command, .. } => format!("#!/bin/bash\n{command}\n"),
        Container { command, .. } => {
            let mut script = format!("#!/bin/bash\n{WORDS}");
            for (index, line) in command.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let _ = write!(
                    script,
                    "words {}\nflux submit --flags waitable --error=\"$FLUX_OUTPUT_DIR/job-{index}.err\" \
                     --output=\"$FLUX_OUTPUT_DIR/job-{index}.out\" \"${{argv[@]}}\"\n",
                    quote(line)
                );
            }
            script + "flux queue idle\nflux jobs -a\nflux job wait --all\n"
        }
    }
}
