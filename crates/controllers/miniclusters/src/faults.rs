// SPDX-License-Identifier: Apache-2.0
//! What cannot work, found before anything is made. The API server refuses most of it already; this holds without it.

use std::collections::{BTreeMap, BTreeSet};

use bivouac_api::flux::{Container, MiniCluster, Volume};
use bivouac_core::{Quantity, names};
use kube::ResourceExt;

use crate::{
    certificate::Certificate,
    cluster::{maximum, runner, view},
    script::quote::is_closed,
};

/// A sentence for every fault; none for a MiniCluster that can be made.
pub fn of(minicluster: &MiniCluster) -> Vec<String> {
    let mut faults = Vec::new();
    sizes(minicluster, &mut faults);
    texts(minicluster, &mut faults);
    containers(minicluster, &mut faults);
    volumes(minicluster, &mut faults);
    flux(minicluster, &mut faults);
    faults
}

fn sizes(minicluster: &MiniCluster, faults: &mut Vec<String>) {
    let spec = &minicluster.spec;
    let is_new = minicluster.status.as_ref().is_none_or(|status| status.maximum_size < 1);
    let mut fault = |wrong: bool, text: &str| faults.extend(wrong.then(|| text.to_owned()));
    fault(spec.size < 1 && is_new, "size must be at least 1: the lead broker needs a pod");
    fault(is_new && spec.max_size != 0 && spec.max_size < spec.size, "maxSize must not be below size");
    fault(spec.min_size < 0, "minSize must not be negative");
    fault(
        spec.size >= 1 && spec.min_size > spec.size,
        "minSize must not be above size: the brokers would wait for pods that never come",
    );
    fault(spec.backoff_limit < 0, "backoffLimit must not be negative");
    fault(spec.tasks < 0, "tasks must not be negative");
    fault(spec.deadline_seconds < 1, "deadlineSeconds must be at least 1");
}

fn texts(minicluster: &MiniCluster, faults: &mut Vec<String>) {
    let name = minicluster.name_any();
    let longest = format!("{name}-{}", maximum(minicluster).saturating_sub(1));
    if !is_service_name(&name) || longest.len() > names::LABEL_MAX {
        faults.push(format!(
            "the name {name} cannot be used: {longest} must be a host name of at most 63 lowercase letters, digits and \
             dashes that begins with a letter"
        ));
    }
    let headless = minicluster.spec.network.as_ref().map(|network| network.headless_name.as_str()).unwrap_or_default();
    if !headless.is_empty() && !is_service_name(headless) {
        faults.push(format!("network.headlessName {headless} is no name for a Service"));
    }
    // Kubernetes takes them, no shell and no file name does.
    let text = serde_json::to_string(&minicluster.spec).unwrap_or_default();
    if text.contains("\\u0000") {
        faults.push("the spec has a NUL character in one of its texts".to_owned());
    }
    let pod = minicluster.spec.pod.clone().unwrap_or_default();
    if minicluster.spec.share_process_namespace && pod.host_pid {
        faults.push("shareProcessNamespace and pod.hostPID cannot both be true".to_owned());
    }
    let restart = pod.restart_policy.as_str();
    if !["", "OnFailure", "Never"].contains(&restart) {
        faults.push(format!("pod.restartPolicy {restart} cannot be used: pods of a Job take OnFailure or Never"));
    }
}

/// A DNS label that begins with a letter.
fn is_service_name(text: &str) -> bool {
    names::is_dns1123_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

fn containers(minicluster: &MiniCluster, faults: &mut Vec<String>) {
    let spec = &minicluster.spec;
    let runner = runner(&spec.containers).map(|placed| placed.index);
    if runner.is_none() {
        faults.push("exactly one container must have runFlux set to true".to_owned());
    }
    let mut seen = BTreeSet::from([minicluster.name_any(), view(&spec.flux.clone().unwrap_or_default()).name]);
    for (index, container) in spec.containers.iter().enumerate() {
        if Some(index) == runner {
            running(container, faults);
        } else {
            named(&format!("containers[{index}]"), container, &mut seen, faults);
        }
        ports(container, faults);
    }
    let mut seen = BTreeSet::new();
    for (index, container) in spec.services.iter().enumerate() {
        named(&format!("services[{index}]"), container, &mut seen, faults);
        ports(container, faults);
        let commands = container.commands.clone().unwrap_or_default();
        if [commands.pre, commands.broker_pre, commands.worker_pre].iter().any(|text| !text.is_empty()) {
            faults.push(
                "a service container runs no broker: commands.pre, brokerPre and workerPre have no place in it".into(),
            );
        }
    }
}

fn running(container: &Container, faults: &mut Vec<String>) {
    if container.launcher && container.batch {
        faults.push("launcher and batch cannot both be true in one container".to_owned());
    }
    let commands = container.commands.clone().unwrap_or_default();
    if !container.command.is_empty() && !commands.script.is_empty() {
        faults.push("the container that runs Flux takes either command or commands.script, not both".to_owned());
    }
    let lines: Vec<&str> = if container.batch && !container.batch_raw {
        container.command.lines().collect()
    } else {
        vec![&container.command]
    };
    if (!container.batch_raw && lines.iter().any(|line| !is_closed(line))) || !is_closed(&commands.prefix) {
        faults
            .push("command or commands.prefix has a quote that is never closed, or a backslash at its end".to_owned());
    }
}

fn named(place: &str, container: &Container, seen: &mut BTreeSet<String>, faults: &mut Vec<String>) {
    let name = &container.name;
    if name.is_empty() {
        faults.push(format!("{place} does not run Flux and must have a name"));
    } else if !is_service_name(name) {
        faults.push(format!("{name} is no name for a container: it also names its Service"));
    } else if !seen.insert(name.clone()) {
        faults.push(format!("two containers are named {name}"));
    }
}

fn ports(container: &Container, faults: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for port in &container.ports {
        if !(1..=65535).contains(port) {
            faults.push(format!("{port} is no port"));
        } else if !seen.insert(port) {
            faults.push(format!("port {port} is listed twice in one container"));
        }
    }
}

fn volumes(minicluster: &MiniCluster, faults: &mut Vec<String>) {
    for containers in [&minicluster.spec.containers, &minicluster.spec.services] {
        let mut seen: BTreeMap<&str, &Volume> = BTreeMap::new();
        for (name, volume) in containers.iter().flat_map(|container| &container.volumes) {
            volume_faults(name, volume, faults);
            // The same source may be mounted at several places.
            let source = |volume: &Volume| Volume { path: String::new(), read_only: false, ..volume.clone() };
            if seen.insert(name, volume).is_some_and(|other| source(other) != source(volume)) {
                faults.push(format!("volume {name} is described in two ways"));
            }
        }
    }
}

fn volume_faults(name: &str, volume: &Volume, faults: &mut Vec<String>) {
    if !names::is_dns1123_label(name) {
        faults.push(format!("{name} is no name for a volume"));
    }
    if volume.path.is_empty() && !volume.empty_dir {
        faults.push(format!("volume {name} must have a path to be mounted at"));
    } else if !volume.path.is_empty() && (!volume.path.starts_with('/') || volume.path.contains(':')) {
        faults.push(format!("volume {name} must be mounted at an absolute path without colons"));
    }
    let limit = &volume.empty_dir_size_limit;
    if !limit.is_empty() && limit.parse::<Quantity>().is_err() {
        faults.push(format!("emptyDirSizeLimit {limit} of volume {name} is no quantity"));
    }
}

fn flux(minicluster: &MiniCluster, faults: &mut Vec<String>) {
    let Some(flux) = &minicluster.spec.flux else { return };
    let mut fault = |wrong: bool, text: String| faults.extend(wrong.then_some(text));
    let view = view(flux);
    fault(
        !names::is_dns1123_label(&view.name),
        format!("flux.container.name {} is no name for a container", view.name),
    );
    let path = &view.mount_path;
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    fault(
        !path.starts_with('/') || !path.chars().all(plain),
        format!("flux.container.mountPath {path} must be an absolute path of letters, digits and the signs . _ - only"),
    );
    fault(
        !flux.curve_cert.is_empty() && Certificate::read(&flux.curve_cert).is_none(),
        "flux.curveCert is no certificate that Flux takes: it needs the sections metadata and curve, and keys that belong \
         together"
            .to_owned(),
    );
    fault(
        !is_closed(&flux.submit_command) || !is_closed(&flux.option_flags),
        "flux.submitCommand or flux.optionFlags has a quote that is never closed".to_owned(),
    );
    for name in flux.environment.keys() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let wrong = name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(word);
        fault(wrong, format!("{name} in flux.environment is no name for a variable"));
    }
    if let Some(bursting) = &flux.bursting {
        fault(
            !bursting.hostlist.is_empty() && !bursting.clusters.is_empty(),
            "flux.bursting takes either hostlist or clusters, not both".to_owned(),
        );
        let leader = bursting.lead_broker.clone().unwrap_or_default();
        fault(
            !leader.address.is_empty() && (leader.name.is_empty() || leader.size < 1),
            "flux.bursting.leadBroker needs the name and the size of the cluster that leads".to_owned(),
        );
        fault(bursting.clusters.iter().any(|one| one.size < 0), "a bursting cluster has a negative size".to_owned());
    }
}
