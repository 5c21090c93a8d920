// SPDX-License-Identifier: Apache-2.0
//! What is refused, and with which words.

use bivouac_api::flux::MiniCluster;
use bivouac_miniclusters::{Cluster, Settings};

use crate::fixtures::{minicluster, spec};

fn faults(minicluster: &MiniCluster) -> String {
    match Cluster::of(minicluster, minicluster.spec.size, &Settings::default()) {
        Ok(_) => String::new(),
        Err(faults) => faults.join("; "),
    }
}

#[test]
fn what_cannot_work_is_refused_with_a_sentence() {
    let two = "containers: [{image: a, runFlux: true}, {image: b, name: b";
    let cases = [
        ("size: 0", "size must be at least 1"),
        ("size: 4\nmaxSize: 2", "maxSize must not be below size"),
        ("size: 2\nminSize: 3", "minSize must not be above size"),
        ("minSize: -1", "minSize must not be negative"),
        ("backoffLimit: -1", "backoffLimit must not be negative"),
        ("tasks: -1", "tasks must not be negative"),
        ("deadlineSeconds: 0", "deadlineSeconds must be at least 1"),
        ("containers: []", "exactly one container must have runFlux"),
        ("containers: [{image: a}, {image: b, name: b}]", "exactly one container must have runFlux"),
        (&format!("{two}, runFlux: true}}]"), "exactly one container must have runFlux"),
        ("containers: [{image: a, runFlux: true}, {image: b}]", "containers[1] does not run Flux and must have a name"),
        (&format!("{two}}}, {{image: c, name: b}}]"), "two containers are named b"),
        ("containers: [{image: a, runFlux: true}, {image: b, name: B_}]", "B_ is no name for a container"),
        ("containers: [{image: a, runFlux: true}, {image: b, name: flux-view}]", "two containers are named flux-view"),
        ("containers: [{launcher: true, batch: true}]", "launcher and batch"),
        ("containers: [{command: a, commands: {script: b}}]", "either command or commands.script"),
        ("containers: [{command: \"it's\"}]", "a quote that is never closed"),
        ("containers: [{batch: true, command: \"it's\\nit's\"}]", "a quote that is never closed"),
        ("containers: [{ports: [0]}]", "0 is no port"),
        ("containers: [{ports: [80, 80]}]", "port 80 is listed twice"),
        ("containers: [{volumes: {data: {claimName: a}}}]", "volume data must have a path"),
        ("containers: [{volumes: {data: {hostPath: /a, path: a}}}]", "an absolute path without colons"),
        ("containers: [{volumes: {data: {emptyDir: true, emptyDirSizeLimit: much}}}]", "much of volume data"),
        ("services: [{image: a}]", "services[0] does not run Flux and must have a name"),
        ("services: [{image: a, name: a, commands: {pre: x}}]", "a service container runs no broker"),
        ("shareProcessNamespace: true\npod: {hostPID: true}", "cannot both be true"),
        ("pod: {restartPolicy: Always}", "OnFailure or Never"),
        ("network: {headlessName: 0a}", "is no name for a Service"),
        ("flux: {curveCert: x}", "no certificate that Flux takes"),
        ("flux: {container: {mountPath: mnt}}", "must be an absolute path"),
        ("flux: {container: {mountPath: '/mnt/$(id)'}}", "must be an absolute path"),
        ("flux: {environment: {'a;b': c}}", "a;b in flux.environment"),
        ("flux: {optionFlags: \"'\"}", "flux.optionFlags has a quote"),
        ("flux: {bursting: {hostlist: a, clusters: [{name: b}]}}", "either hostlist or clusters"),
        ("flux: {bursting: {leadBroker: {address: a, name: '', size: 0}}}", "needs the name and the size"),
        ("archive: {path: \"a\\0b\"}", "NUL character"),
    ];
    for (yaml, expected) in cases {
        let told = faults(&minicluster(yaml));
        assert!(told.contains(expected), "{yaml}\n  told: {told}\n  expected: {expected}");
    }
}

#[test]
fn one_volume_has_one_description() {
    let same = "containers: [{runFlux: true, volumes: {d: {path: /a, claimName: c}}}, {name: b, volumes: {d: {path: \
                /b, readOnly: true, claimName: c}}}]";
    assert_eq!(faults(&minicluster(same)), "");
    let other = same.replacen("claimName: c", "claimName: other", 1);
    assert!(faults(&minicluster(&other)).contains("volume d is described in two ways"));
}

#[test]
fn host_names_must_fit() {
    for (name, size, fits) in [("a".repeat(61), 10, true), ("a".repeat(61), 11, false), ("0a".into(), 1, false)] {
        let minicluster = MiniCluster::new(&name, spec(&format!("size: {size}")));
        assert_eq!(faults(&minicluster).is_empty(), fits, "{name} {size}");
    }
    assert!(!faults(&MiniCluster::new("a.b", spec(""))).is_empty());
}

#[test]
fn all_faults_are_told_at_once() {
    assert_eq!(faults(&minicluster("size: 0\ntasks: -1")).matches("must").count(), 2);
}
