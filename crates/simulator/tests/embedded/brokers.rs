// SPDX-License-Identifier: Apache-2.0
//! Brokers of a Flux cluster: they do what their scripts and their certificate say.

use serde_json::{Value, json};

use crate::camp::{EVENTS, PODS, after, camp, pod};
use crate::stage::{self, Stage};

/// Scripts for these hosts, of which the first leads.
fn scripts(hosts: &str, options: &str, command: &str) -> Value {
    let runner =
        format!("#!/bin/bash\nmainHost='flux-0'\nbrokerOptions='{options}'\ncommand='{command}'\nwords() {{\n");
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "flux-entrypoint", "namespace": "team" },
        "data": { "flux-view": format!("#!/bin/bash\nop_quiet=''\nhosts='{hosts}'\nset -eu\n"), "wait-0": runner } })
}

/// A certificate whose keys are made of one letter.
fn certificate(name: &str, letter: &str) -> Value {
    let key = letter.repeat(40);
    let text = format!("metadata\ncurve\n    public-key = \"{key}\"\n    secret-key = \"{key}\"\n");
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": "team" },
        "stringData": { "curve.cert": text } })
}

/// The broker of a rank, as the operator would have it.
fn broker(rank: usize, curve: &str, script: &[(&str, &str)]) -> Value {
    let item = |key: &str, path: &str| json!({ "key": key, "path": path });
    let texts = json!([item("flux-view", "flux-init.sh"), item("wait-0", "wait-0.sh")]);
    let sources = json!([{ "configMap": { "name": "flux-entrypoint", "items": texts } },
        { "secret": { "name": curve, "items": [item("curve.cert", "curve.cert")] } }]);
    let init = json!({ "name": "view", "image": "x", "command": ["/bin/bash", "/flux_operator/flux-init.sh"],
        "volumeMounts": [{ "name": "scripts", "mountPath": "/flux_operator/flux-init.sh", "subPath": "flux-init.sh" }] });
    let main = json!({ "name": "flux", "image": "x", "command": ["/bin/bash", "/flux_operator/wait-0.sh"],
        "volumeMounts": [{ "name": "scripts", "mountPath": "/flux_operator" }] });
    let name = format!("flux-{rank}");
    let spec = json!({ "hostname": name, "subdomain": "flux", "restartPolicy": "Never", "initContainers": [init],
        "containers": [main], "volumes": [{ "name": "scripts", "projected": { "sources": sources } }] });
    let mut pod = pod(script, spec);
    pod["metadata"]["name"] = json!(name);
    pod
}

async fn cluster(hosts: &str, options: &str, command: &str) -> Stage {
    let stage = camp(&["a", "b"]).await;
    stage.apply(scripts(hosts, options, command)).await;
    stage.apply(certificate("curve", "k")).await;
    stage
}

/// The phase of a broker, and the code that it ended with.
async fn phase(stage: &Stage, rank: usize) -> (String, Option<i64>) {
    let pod = stage.get(&format!("{PODS}/flux-{rank}")).await.unwrap_or_default();
    let code = pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].as_i64();
    (pod["status"]["phase"].as_str().unwrap_or("gone").to_owned(), code)
}

fn is(phase: &str, code: Option<i64>) -> (String, Option<i64>) {
    (phase.to_owned(), code)
}

/// What the lead says of its quorum: whether it is there, why, and who is missing.
async fn quorum(stage: &Stage) -> Option<(String, String, String)> {
    let pod = stage.get(&format!("{PODS}/flux-0")).await.unwrap();
    let all = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|one| one["type"] == "simulator.bivouac.dev/quorum")?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

fn says(truth: &str, reason: &str, message: &str) -> Option<(String, String, String)> {
    Some((truth.to_owned(), reason.to_owned(), message.to_owned()))
}

const RUN: [(&str, &str); 1] = [("run", "30s")];

#[test]
fn the_program_begins_when_all_are_there_and_all_end_with_it() {
    stage::run(async {
        let stage = cluster("flux-[0-2]", "-Stbon.fanout=256", "hostname").await;
        let script = [("run", "30s"), ("exit-code", "3")];
        stage.apply(broker(0, "curve", &script)).await;
        stage.apply(broker(1, "curve", &script)).await;
        after(100).await;
        assert_eq!(quorum(&stage).await, says("False", "BrokersMissing", "2 of 3 brokers of flux-[0-2]"));
        assert_eq!(phase(&stage, 0).await, is("Running", None), "the run does not count from its start");
        let before = stage.server.store().revision();
        after(3_600).await;
        assert_eq!(stage.server.store().revision(), before, "to wait costs nothing");

        stage.apply(broker(2, "curve", &script)).await;
        after(15).await;
        assert_eq!(quorum(&stage).await, says("True", "ProgramBegun", ""));
        after(10).await;
        assert_eq!(phase(&stage, 0).await, is("Running", None));
        after(20).await;
        assert_eq!(quorum(&stage).await, says("True", "ProgramEnded", ""));
        assert_eq!(phase(&stage, 0).await, is("Failed", Some(3)));
        for rank in [1, 2] {
            assert_eq!(phase(&stage, rank).await, is("Succeeded", Some(0)), "what came of it is the lead's to say");
        }
    });
}

#[test]
fn a_quorum_that_was_there_once_is_enough() {
    stage::run(async {
        let stage = cluster("flux-[0-7]", "-Sbroker.quorum=2 -Slog-stderr-level=6", "hostname").await;
        for rank in [0, 1] {
            stage.apply(broker(rank, "curve", &RUN)).await;
        }
        after(15).await;
        assert_eq!(quorum(&stage).await, says("True", "ProgramBegun", ""));
        stage.delete(&format!("{PODS}/flux-1")).await;
        after(30).await;
        assert_eq!(phase(&stage, 1).await, is("gone", None));
        assert_eq!(phase(&stage, 0).await, is("Succeeded", Some(0)));
    });
}

#[test]
fn who_leaves_before_is_missed() {
    stage::run(async {
        let stage = cluster("flux-[0-2]", "", "hostname").await;
        for rank in [0, 1] {
            stage.apply(broker(rank, "curve", &RUN)).await;
        }
        after(30).await;
        stage.delete(&format!("{PODS}/flux-1")).await;
        stage.apply(broker(2, "curve", &RUN)).await;
        after(60).await;
        assert_eq!(quorum(&stage).await, says("False", "BrokersMissing", "2 of 3 brokers of flux-[0-2]"));
        stage.apply(broker(1, "curve", &RUN)).await;
        after(60).await;
        assert_eq!(phase(&stage, 0).await, is("Succeeded", Some(0)));
    });
}

#[test]
fn brokers_with_another_certificate_do_not_meet() {
    stage::run(async {
        let stage = cluster("flux-[0-1]", "", "hostname").await;
        stage.apply(certificate("other", "o")).await;
        stage.apply(broker(0, "curve", &RUN)).await;
        stage.apply(broker(1, "other", &RUN)).await;
        after(60).await;
        assert_eq!(quorum(&stage).await, says("False", "BrokersMissing", "1 of 2 brokers of flux-[0-1]"));
    });
}

#[test]
fn a_certificate_that_changes_parts_those_that_run_from_those_that_come() {
    stage::run(async {
        let stage = cluster("flux-[0-1]", "", "hostname").await;
        stage.apply(broker(0, "curve", &RUN)).await;
        after(20).await;
        stage.apply(certificate("curve", "n")).await;
        stage.apply(broker(1, "curve", &RUN)).await;
        after(60).await;
        assert_eq!(quorum(&stage).await, says("False", "BrokersMissing", "1 of 2 brokers of flux-[0-1]"));
    });
}

#[test]
fn who_cannot_start_fails_and_says_why() {
    let cases = [
        ("flux-[1-3]", "", "k", "no host of \"flux-[1-3]\" is named flux-0"),
        ("flux-[0-3]", "", "", "/flux_operator/curve.cert is no certificate"),
        ("flux-[0-3]", "-Sbroker.quorum=9", "k", "a quorum of 9 cannot be, there are 4 hosts"),
    ];
    for (hosts, options, letter, why) in cases {
        stage::run(async {
            let stage = cluster(hosts, options, "hostname").await;
            stage.apply(certificate("curve", letter)).await;
            stage.apply(broker(0, "curve", &RUN)).await;
            after(20).await;
            assert_eq!(phase(&stage, 0).await, is("Failed", Some(1)), "{why}");
            let told = stage.list(EVENTS).await;
            let words = format!("cannot start the broker: {why}");
            assert_eq!(told.iter().filter(|event| event["message"] == words.as_str()).count(), 1, "{told:#?}");
        });
    }
}

#[test]
fn without_a_program_all_stay() {
    for (options, command) in [("-Sbroker.rc2_none", "hostname"), ("", "")] {
        stage::run(async {
            let stage = cluster("flux-[0-1]", options, command).await;
            for rank in [0, 1] {
                stage.apply(broker(rank, "curve", &RUN)).await;
            }
            after(3_600).await;
            assert_eq!(phase(&stage, 0).await, is("Running", None));
            assert_eq!(phase(&stage, 1).await, is("Running", None));
            assert_eq!(quorum(&stage).await, None, "nothing waits for it");
        });
    }
}

#[test]
fn workers_stay_when_the_lead_is_lost() {
    for script in [vec![("run", "10h")], vec![("crash-after.flux", "20s")]] {
        stage::run(async {
            let stage = cluster("flux-[0-1]", "", "hostname").await;
            stage.apply(broker(0, "curve", &script)).await;
            stage.apply(broker(1, "curve", &RUN)).await;
            after(15).await;
            assert_eq!(quorum(&stage).await, says("True", "ProgramBegun", ""));
            if script.contains(&("run", "10h")) {
                stage.delete(&format!("{PODS}/flux-0")).await;
            }
            after(600).await;
            assert_ne!(phase(&stage, 0).await, is("Running", None));
            assert_eq!(phase(&stage, 1).await, is("Running", None));
        });
    }
}

#[test]
fn workers_of_a_lead_elsewhere_stay() {
    stage::run(async {
        let stage = cluster("far.example.com,flux-[1-2]", "-Sbroker.quorum=1", "hostname").await;
        for rank in [1, 2] {
            stage.apply(broker(rank, "curve", &RUN)).await;
        }
        after(600).await;
        assert_eq!(phase(&stage, 1).await, is("Running", None));
        assert_eq!(phase(&stage, 2).await, is("Running", None));
    });
}

#[test]
fn a_lead_that_starts_again_waits_again() {
    stage::run(async {
        let stage = cluster("flux-[0-1]", "", "hostname").await;
        let mut lead = broker(0, "curve", &[("run", "30s"), ("exit-code", "3")]);
        lead["spec"]["restartPolicy"] = json!("OnFailure");
        stage.apply(lead).await;
        stage.apply(broker(1, "curve", &RUN)).await;
        after(20).await;
        stage.delete(&format!("{PODS}/flux-1")).await;
        after(60).await;
        assert_eq!(quorum(&stage).await, says("False", "BrokersMissing", "1 of 2 brokers of flux-[0-1]"));
        let pod = stage.get(&format!("{PODS}/flux-0")).await.unwrap();
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 1);
    });
}
