// SPDX-License-Identifier: Apache-2.0
//! The texts of the scripts and of the configuration.

use std::{path::PathBuf, process::Command};

use bivouac_miniclusters::script::{self, broker_config, broker_options, hostlist, submit_flags};
use bivouac_testenv::debian;

use crate::fixtures::with;

#[test]
fn hosts_are_listed_in_the_order_of_ranks() {
    let lead = "leadBroker: {address: 10.0.0.1, name: root, size: ";
    let cases = [
        ("size: 4", "flux-sample-[0-3]"),
        ("size: 1", "flux-sample-[0]"),
        ("size: 4\nmaxSize: 10", "flux-sample-[0-9]"),
        ("flux: {bursting: {hostlist: 'a[0-3],b'}}", "a[0-3],b"),
        ("size: 2\nflux: {bursting: {clusters: [{name: b, size: 4}]}}", "flux-sample-[0-1],b-[0-3]"),
        ("size: 3\nflux: {bursting: {clusters: [{}, {size: 1}]}}", "flux-sample-[0-2],burst-0-[0-2],burst-1-[0]"),
        (&format!("flux: {{bursting: {{{lead} 4}}}}}}"), "10.0.0.1,root-[1-3]"),
        (&format!("flux: {{bursting: {{{lead} 2}}}}}}"), "10.0.0.1,root-[1]"),
        (&format!("flux: {{bursting: {{{lead} 1}}}}}}"), "10.0.0.1"),
    ];
    for (yaml, expected) in cases {
        assert_eq!(with(yaml, hostlist), expected, "{yaml}");
    }
}

#[test]
fn the_broker_is_told_its_options_in_the_known_order() {
    let all = "size: 2\nmaxSize: 4\ninteractive: true\nlogging: {zeromq: true}\nflux: {topology: 'kary:2'}";
    assert_eq!(
        with(all, broker_options),
        "-Scron.directory=/mnt/flux/config/etc/flux/system/cron.d -Stbon.fanout=256 -Srundir=/mnt/flux/config/run/flux \
         -Sbroker.rc2_none -Sstatedir=/mnt/flux/config/var/lib/flux \
         -Slocal-uri=local:///mnt/flux/config/run/flux/local -Stbon.connect_timeout=5s -Stbon.topo=kary:2 \
         -Sbroker.quorum=2 -Stbon.zmqdebug=1 -Slog-stderr-level=6 -Slog-stderr-mode=local"
    );
    let cases = [
        ("size: 4", "broker.quorum", false),
        ("size: 4\nmaxSize: 10", "-Sbroker.quorum=4", true),
        ("size: 4\nmaxSize: 10\nminSize: 2", "-Sbroker.quorum=2", true),
        ("size: 4\nminSize: 2", "-Sbroker.quorum=2", true),
        ("flux: {connectTimeout: ''}", "connect_timeout", false),
        ("flux: {disableSocket: true}", "local-uri", false),
        ("flux: {logLevel: 7}", "-Slog-stderr-level=7", true),
        ("flux: {logLevel: 0}", "-Slog-stderr-level=6", true),
        ("flux: {logLevel: 7}\nlogging: {quiet: true}", "-Slog-stderr-level=0", true),
        ("flux: {topology: 'a b'}", "'-Stbon.topo=a b'", true),
    ];
    for (yaml, text, there) in cases {
        assert_eq!(with(yaml, broker_options).contains(text), there, "{yaml}");
    }
}

#[test]
fn the_work_asks_for_nodes_and_tasks() {
    let cases = [
        ("size: 4\ntasks: 4", "-N 4 -n4"),
        ("size: 4\ntasks: 0", "-N 4"),
        ("size: 4\ntasks: 2", "-n2"),
        ("size: 4", "-n1"),
        ("size: 1\nlogging: {debug: true}\nflux: {optionFlags: -ompi=openmpi@5}", "-N 1 -n1 -ompi=openmpi@5 -vvv"),
    ];
    for (yaml, expected) in cases {
        assert_eq!(with(yaml, submit_flags), expected, "{yaml}");
    }
}

// === Defects of the original that are repaired, each by its number in the list of known weak points ===

#[test]
fn defect_8_a_bursting_child_knows_its_lead_by_address() {
    let child = "flux: {bursting: {leadBroker: {address: 10.0.0.1, name: root, size: 3, port: 9000}, clusters: [{name: \
                 b, size: 2}]}}";
    let config = with(child, broker_config);
    let hosts = "hosts = [\n  { host = \"10.0.0.1\", bind = \"tcp://*:9000\", connect = \"tcp://10.0.0.1:9000\" },\n  \
                 { host = \"root-[1-2],b-[0-1]\" },\n]";
    assert!(config.contains(hosts), "{config}");
    let none = child.replace("port: 9000", "port: 0");
    assert!(with(&none, broker_config).contains("tcp://10.0.0.1:8050"));
    assert!(with(child, script::runner).contains("mainHost='root-0'"), "no pod of a child leads");
}

#[test]
fn defect_9_another_mount_path_is_used_everywhere() {
    let elsewhere = "flux: {container: {mountPath: /opt/flux/}}";
    for text in [with(elsewhere, script::init), with(elsewhere, script::runner), with(elsewhere, broker_config)] {
        assert!(!text.contains("/mnt/flux"), "{text}");
        assert!(text.contains("/opt/flux"), "{text}");
    }
}

#[test]
fn defect_17_domain_and_interface_are_not_fixed() {
    let config = with("size: 2", broker_config);
    assert!(config.contains("default_bind = \"tcp://*:%p\""), "{config}");
    assert!(config.contains("default_connect = \"tcp://%h.flux-sample.default.svc.cluster.local:%p\""), "{config}");
}

#[test]
fn a_hostile_text_cannot_leave_its_place_in_the_configuration() {
    let config = with("flux: {scheduler: {queuePolicy: \"a\\\"\\n[access]\\\\\"}}", broker_config);
    assert!(config.ends_with("queue-policy = \"a\\\"\\u000A[access]\\\\\"\n"), "{config}");
}

// === Every script is one that shells and linters take ===

const VARIED: [&str; 5] = [
    "size: 4",
    "interactive: true\ncontainers: [{image: a}]\nflux: {container: {disable: true}}",
    "logging: {quiet: true, strict: true, timed: true, debug: true, zeromq: true}\narchive: {path: \"/a b/'c\"}",
    "containers: [{batch: true, command: \"echo '1'\\n\\necho $2\", commands: {pre: \"}; fi; '\", post: 'cat <<EOF'}}]",
    "containers: [{runFlux: true, launcher: true, commands: {script: \"#!/bin/sh\\n'\"}}, {name: b, command: 'a && b'}]",
];

fn scripts() -> Vec<String> {
    let all = |yaml: &str| {
        with(yaml, |cluster| {
            let sidecars = cluster.sidecars.iter().map(|placed| script::sidecar(cluster, *placed));
            [script::init(cluster), script::runner(cluster)].into_iter().chain(sidecars).collect::<Vec<_>>()
        })
    };
    VARIED.iter().flat_map(|yaml| all(yaml)).collect()
}

fn lint(mut program: Command, script: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script.sh");
    std::fs::write(&file, script).unwrap();
    let output = program.arg(&file).output().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn bash_can_read_every_script() {
    assert_eq!(scripts().len(), 11);
    for script in scripts() {
        let mut bash = Command::new("bash");
        bash.arg("-n");
        lint(bash, &script);
    }
}

/// The one of this machine, else the one of Debian.
fn shellcheck() -> Result<(PathBuf, String), String> {
    if Command::new("shellcheck").arg("--version").output().is_ok() {
        return Ok(("shellcheck".into(), String::new()));
    }
    let root = debian::unpack(&["shellcheck", "libffi8", "libgmp10"]).map_err(|error| format!("{error:#}"))?;
    Ok((root.join("usr/bin/shellcheck"), debian::libraries(&root)))
}

#[test]
fn shellcheck_has_no_complaint() {
    match shellcheck() {
        Err(reason) => println!("NOT RUN: shellcheck absent: {reason}"),
        Ok((program, libraries)) => scripts().iter().for_each(|script| {
            let mut shellcheck = Command::new(&program);
            shellcheck.env("LD_LIBRARY_PATH", &libraries);
            lint(shellcheck, script);
        }),
    }
}
