// SPDX-License-Identifier: Apache-2.0
//! Containers of the pods.

use bivouac_api::flux;
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, EnvVarSource, ExecAction, Lifecycle, LifecycleHandler, Probe, SecretKeySelector,
    SecurityContext,
};

use super::volume;
use crate::{
    cluster::{Cluster, Placed},
    script,
};

/// Brings Flux along and writes the configuration.
pub fn init(cluster: &Cluster<'_>) -> Container {
    let view = &cluster.view;
    Container {
        name: view.name.clone(),
        image: Some(view.image.clone()),
        image_pull_policy: Some(view_pull_policy(cluster)),
        command: Some(bash(script::INIT_FILE)),
        working_dir: some(&view.working_dir),
        resources: view.resources.clone(),
        security_context: view.security_context.clone().or_else(|| same_user(cluster)),
        stdin: Some(true),
        tty: Some(true),
        volume_mounts: Some(volume::mounts_of_init(cluster)),
        ..Container::default()
    }
}

pub fn view_pull_policy(cluster: &Cluster<'_>) -> String {
    if cluster.view.pull_always { "Always" } else { "IfNotPresent" }.to_owned()
}

/// What the init container writes belongs to the user that runs the broker.
fn same_user(cluster: &Cluster<'_>) -> Option<SecurityContext> {
    let runner = cluster.runner.container.security_context.as_ref()?;
    let named = runner.run_as_user.is_some() || runner.run_as_group.is_some();
    named.then(|| SecurityContext {
        run_as_user: runner.run_as_user,
        run_as_group: runner.run_as_group,
        ..SecurityContext::default()
    })
}

/// Runs the broker. It has started when its socket is there, and is ready as long as it is: the script removes the socket
/// of a broker that has ended.
pub fn runner(cluster: &Cluster<'_>) -> Container {
    let container = cluster.runner.container;
    let socket = format!("{}/config/run/flux/local", cluster.view.mount_path);
    let ask = ["/bin/bash", "-c", "[ -S \"$0\" ]", &socket].map(str::to_owned).to_vec();
    let probe = |period, failures| Probe {
        exec: Some(ExecAction { command: Some(ask.clone()) }),
        period_seconds: Some(period),
        // The work may keep all cores busy.
        timeout_seconds: Some(5),
        failure_threshold: Some(failures),
        ..Probe::default()
    };
    let has_socket = !cluster.flux.disable_socket;
    Container {
        name: cluster.name.clone(),
        command: Some(bash(&script::file(&script::runner_key(cluster)))),
        // Blocks of the user may take long before the broker can start: a day.
        startup_probe: has_socket.then(|| probe(1, 86_400)),
        readiness_probe: has_socket.then(|| probe(10, 2)),
        volume_mounts: Some(volume::mounts_of_runner(cluster)),
        ..plain(container)
    }
}

pub fn sidecar(cluster: &Cluster<'_>, placed: Placed<'_>) -> Container {
    let script = script::sidecar_key(placed).map(|key| script::file(&key));
    Container {
        command: script.as_deref().map(bash),
        volume_mounts: Some(volume::mounts_of_sidecar(cluster, placed.container, script.as_deref())),
        ..plain(placed.container)
    }
}

/// A container of the services pod: the image's own entry point, or the command as a shell line.
pub fn service(container: &flux::Container) -> Container {
    Container {
        // Kubernetes fills `$(NAME)` in here: a doubled dollar keeps the text for the shell.
        command: (!container.command.is_empty()).then(|| shell(&container.command.replace("$(", "$$("))),
        volume_mounts: Some(volume::own_mounts(container)),
        ..plain(container)
    }
}

/// What all containers have in common.
fn plain(container: &flux::Container) -> Container {
    let pull = match container.image_pull_policy.as_str() {
        _ if container.pull_always => "Always",
        "" => "IfNotPresent",
        policy => policy,
    };
    Container {
        name: container.name.clone(),
        image: Some(container.image.clone()),
        image_pull_policy: Some(pull.to_owned()),
        working_dir: some(&container.working_dir),
        env: Some(environment(container)).filter(|all| !all.is_empty()),
        ports: Some(container.ports.iter().map(|number| port(*number)).collect::<Vec<_>>())
            .filter(|all| !all.is_empty()),
        lifecycle: lifecycle(container),
        resources: container.resources.clone(),
        security_context: container.security_context.clone(),
        stdin: Some(true),
        tty: Some(true),
        ..Container::default()
    }
}

fn environment(container: &flux::Container) -> Vec<EnvVar> {
    let plain = container.environment.iter().map(|(name, value)| EnvVar {
        name: name.clone(),
        value: Some(value.clone()),
        value_from: None,
    });
    let secret = container.secrets.iter().map(|(name, from)| EnvVar {
        name: name.clone(),
        value: None,
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: from.name.clone(),
                key: from.key.clone(),
                ..SecretKeySelector::default()
            }),
            ..EnvVarSource::default()
        }),
    });
    plain.chain(secret).collect()
}

fn port(number: i32) -> ContainerPort {
    ContainerPort { container_port: number, protocol: Some("TCP".to_owned()), ..ContainerPort::default() }
}

/// The texts are shell lines.
fn lifecycle(container: &flux::Container) -> Option<Lifecycle> {
    let life = container.life_cycle.as_ref()?;
    let handler = |text: &String| {
        let exec = ExecAction { command: Some(shell(text)) };
        (!text.is_empty()).then(|| LifecycleHandler { exec: Some(exec), ..LifecycleHandler::default() })
    };
    let (post_start, pre_stop) = (handler(&life.post_start_exec), handler(&life.pre_stop_exec));
    let some = post_start.is_some() || pre_stop.is_some();
    some.then(|| Lifecycle { post_start, pre_stop, ..Lifecycle::default() })
}

fn bash(file: &str) -> Vec<String> {
    vec!["/bin/bash".to_owned(), format!("{}/{file}", script::FOLDER)]
}

fn shell(line: &str) -> Vec<String> {
    vec!["/bin/sh".to_owned(), "-c".to_owned(), line.to_owned()]
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
