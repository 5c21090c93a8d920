// SPDX-License-Identifier: Apache-2.0
//! The scripts of containers beside Flux, really run.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use crate::run::{Pod, text, until};

#[test]
fn defect_15_a_sidecar_waits_for_the_socket_and_knows_it() {
    let side =
        "{name: b, command: 'echo \"$fluxsocket\" && exit 7', commands: {init: touch begun, servicePre: echo pre}}";
    let pod = Pod::new(&format!("containers: [{{runFlux: true, command: a}}, {side}]"));
    let sidecar = pod.bash(&pod.sidecars[0], "flux-sample-0", &[]);
    until(|| pod.folder.path().join("begun").exists());
    let socket = pod.folder.path().join("mnt/config/run/flux/local");
    let _broker = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let out = sidecar.wait_with_output().unwrap();
    assert_eq!(text(&out.stdout), format!("pre\nlocal://{}\n", socket.display()));
    assert_eq!(out.status.code(), Some(7));
}

#[test]
fn defect_14_a_sidecar_can_be_stopped() {
    let side = "{name: b, command: 'touch begun; sleep 30'}";
    let pod = Pod::new(&format!("flux: {{noWaitSocket: true}}\ncontainers: [{{runFlux: true, command: a}}, {side}]"));
    let mut sidecar = pod.bash(&pod.sidecars[0], "flux-sample-0", &[]);
    until(|| pod.folder.path().join("begun").exists());
    let begin = Instant::now();
    assert!(Command::new("kill").arg(sidecar.id().to_string()).status().unwrap().success());
    assert_eq!(sidecar.wait().unwrap().code(), Some(143));
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}
