// SPDX-License-Identifier: Apache-2.0
//! MiniClusters in real pods: a kubelet and containerd run what our scripts say.

use std::time::Duration;

use bivouac_api::flux::MiniCluster;
use bivouac_testenv::Options;
use k8s_openapi::api::core::v1::{Node as Machine, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, LogParams},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    life::{PATIENCE, Stage, says},
    node::{self, IMAGE, Node},
};

const POLL: Duration = Duration::from_millis(200);

fn spec(command: &str) -> Value {
    json!({
        "size": 2,
        "flux": {"container": {"disable": true, "image": IMAGE}},
        "containers": [{"image": IMAGE, "imagePullPolicy": "Never", "command": command}],
    })
}

/// Waits for the node.
async fn is_known(stage: &Stage) {
    let machines = Api::<Machine>::all(stage.cluster.client());
    let until = Instant::now() + PATIENCE;
    let ready = |machine: Machine| {
        let conditions = machine.status.and_then(|status| status.conditions).unwrap_or_default();
        conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True")
    };
    while !machines.get_opt(node::NAME).await.unwrap().is_some_and(ready) {
        assert!(Instant::now() < until, "the node never comes");
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranks_meet_in_real_pods_and_the_code_of_the_work_is_told() {
    if let Some(reason) = node::obstacle() {
        println!("NOT RUN: {reason}");
        return;
    }
    let options = Options {
        without: vec!["kwok".to_owned()],
        // It is what the API server reaches the kubelet by.
        apiserver_args: vec!["--kubelet-preferred-address-types=InternalIP".to_owned()],
        ..Options::default()
    };
    let stage = Stage::with(options).await;
    let _node = Node::start(&stage.cluster);
    is_known(&stage).await;

    stage.make("good", spec("bash -c 'echo work on $HOSTNAME; flux resource list'")).await;
    stage.make("bad", spec("sh -c 'exit 3'")).await;
    stage.make("lost", spec(&format!("bash -c \"{}; {}\"", waiting_for("down"), waiting_for("up")))).await;
    let all = stage.until::<Pod>("six pods with addresses", |pods| {
        pods.len() == 6 && pods.iter().all(|pod| address(pod).is_some())
    });
    let pods = all.await;
    let named = |prefix: &str| pods.iter().find(|pod| pod.name_any().starts_with(prefix)).unwrap();
    log_with(&stage, named("lost-0-"), "2 of 2 ranks are there").await;
    stage.all::<Pod>().delete(&named("lost-1-").name_any(), &DeleteParams::default()).await.unwrap();
    let over = stage.until::<MiniCluster>("the end of both", |all| {
        all.iter().all(|one| says(one, "JobFinished")) && all.iter().all(|one| code(one).is_some())
    });
    let codes: Vec<_> = over.await.iter().map(|one| (one.name_any(), code(one))).collect();
    assert_eq!(codes, [("bad", Some(3)), ("good", Some(0)), ("lost", Some(0))].map(|(name, code)| (name.into(), code)));

    let other = address(named("good-1-")).unwrap();
    let told = format!("\nwork on good-0\n0 good-0 up\n1 good-1 up {other}\n");
    log_with(&stage, named("good-0-"), &told).await;
    log_with(&stage, named("lost-0-"), "lost-1 is gone\n").await;
}

/// A line that ends when the lead says so of the other rank.
fn waiting_for(what: &str) -> String {
    format!("until flux resource list | grep -q 'lost-1 {what}'; do sleep 0.2; done")
}

/// Waits until a pod has said this, as the API server hears it from the kubelet.
async fn log_with(stage: &Stage, pod: &Pod, text: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let log = stage.all::<Pod>().logs(&pod.name_any(), &LogParams::default()).await;
        // Pods have a terminal.
        let log = log.unwrap_or_else(|error| error.to_string()).replace('\r', "");
        if log.contains(text) {
            return;
        }
        assert!(Instant::now() < until, "{text} is not in {log}");
        tokio::time::sleep(POLL).await;
    }
}

fn address(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref()
}

fn code(minicluster: &MiniCluster) -> Option<i32> {
    minicluster.status.as_ref()?.exit_code
}
