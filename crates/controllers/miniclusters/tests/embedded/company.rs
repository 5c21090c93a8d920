// SPDX-License-Identifier: Apache-2.0
//! Among others: their names, their selectors, their nodes, their queues.

use bivouac_miniclusters::Settings;
use k8s_openapi::{
    api::core::v1::{Node, Service},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::stage::{Stage, run, typed};

const THREE: &str = "{size: 3, interactive: true, containers: [{image: app}]}";

fn service(name: &str, selector: Value) -> Service {
    typed(json!({
        "metadata": {"name": name, "namespace": "default"}, "spec": {"selector": selector, "ports": [{"port": 80}]},
    }))
}

/// The ranks that are labelled.
async fn labelled(stage: &Stage) -> Vec<String> {
    let index = "batch.kubernetes.io/job-completion-index";
    let mut all = Vec::new();
    for pod in stage.pods().await {
        if let Some(label) = pod.labels().get("job-index") {
            assert_eq!(Some(label), pod.labels().get(index), "never a wrong one");
            all.push(label.clone());
        }
    }
    all.sort();
    all
}

#[test]
fn ranks_are_labelled_where_somebody_selects_on_it() {
    run(async {
        let stage = Stage::new(3, Settings::default()).await;
        stage.make("flux", THREE, "10h").await;
        stage.pass(60).await;
        assert_eq!(labelled(&stage).await, ["0"]);
        stage.apply_in(&service("workers", json!({"job-name": "flux", "job-index": "1"}))).await;
        stage.pass(60).await;
        assert_eq!(labelled(&stage).await, ["0", "1", "2"]);
    });
}

#[test]
fn ranks_that_come_later_are_labelled_too() {
    run(async {
        let stage = Stage::new(3, Settings::default()).await;
        stage.apply_in(&service("workers", json!({"job-name": "flux", "job-index": "1"}))).await;
        stage.make("first", THREE, "10h").await;
        stage.pass(60).await;
        stage.make("flux", THREE, "10h").await;
        stage.pass(60).await;
        assert_eq!(labelled(&stage).await, ["0", "0", "1", "1", "2", "2"]);
    });
}

#[test]
fn only_leads_are_watched_until_somebody_cares_for_the_others() {
    const ALL: &str = "app=flux-operator,batch.kubernetes.io/job-completion-index";
    run(async {
        let stage = Stage::new(3, Settings::default()).await;
        stage.make("flux", THREE, "10h").await;
        stage.pass(60).await;
        assert_eq!(stage.says("flux").await.0, "BrokersReady");
        assert!(stage.watches_pods(&format!("{ALL}=0")) && !stage.watches_pods(ALL));
        stage.apply_in(&service("workers", json!({"job-name": "flux", "job-index": "1"}))).await;
        stage.pass(60).await;
        assert!(stage.watches_pods(ALL));
    });
}

#[test]
fn a_label_that_names_another_rank_is_mended() {
    run(async {
        let stage = Stage::new(3, Settings::default()).await;
        let wrong = "{size: 3, interactive: true, containers: [{image: app}], pod: {labels: {job-index: \"9\"}}}";
        stage.make("flux", wrong, "10h").await;
        stage.pass(60).await;
        assert_eq!(labelled(&stage).await, ["0", "1", "2"]);
        stage.asked();
        stage.pass(600).await;
        assert_eq!(stage.asked(), Vec::<String>::new(), "settled");
    });
}

#[test]
fn all_ranks_are_labelled_if_so_said() {
    run(async {
        let stage = Stage::new(3, Settings { label_all_pods: true, ..Settings::default() }).await;
        stage.make("flux", THREE, "10h").await;
        stage.pass(60).await;
        assert_eq!(labelled(&stage).await, ["0", "1", "2"]);
    });
}

#[test]
fn a_name_of_somebody_else_is_waited_for() {
    run(async {
        let stage = Stage::new(3, Settings::default()).await;
        let theirs = stage.apply_in(&service("flux", json!({"app": "theirs"}))).await;
        stage.make("flux", THREE, "10h").await;
        stage.pass(60).await;
        let (reason, sentence) = stage.says("flux").await;
        assert_eq!(reason, "NameTaken");
        assert!(sentence.starts_with("Service flux exists and is not ours"), "{sentence}");
        let seen: Service = stage.all().get("flux").await.unwrap();
        assert_eq!((seen.spec, seen.metadata.owner_references), (theirs.spec, None), "it is left alone");
        stage.all::<Service>().delete("flux", &DeleteParams::default()).await.unwrap();
        stage.pass(600).await;
        assert_eq!(stage.says("flux").await.0, "BrokersReady");
    });
}

#[test]
fn a_taken_name_of_a_sidecar_is_replaced() {
    run(async {
        let stage = Stage::new(3, Settings::default()).await;
        stage.apply_in(&service("web", json!({"app": "theirs"}))).await;
        let spec = "{size: 1, interactive: true, containers: [{runFlux: true, image: app}, {name: web, image: web, ports: [80]}]}";
        stage.make("flux", spec, "10h").await;
        stage.pass(60).await;
        assert_eq!(stage.says("flux").await.0, "BrokersReady");
        assert!(stage.things().await.contains(&"Service flux-web".to_owned()));
    });
}

#[test]
fn a_lost_node_is_not_a_lost_cluster() {
    run(async {
        let stage = Stage::new(3, Settings::default()).await;
        stage.make("flux", "{size: 3, minSize: 1, interactive: true, containers: [{image: app}]}", "10h").await;
        stage.pass(60).await;
        assert_eq!(stage.minicluster("flux").await.status.unwrap().ready, 3);
        let victim = stage.pods().await.into_iter().find(|pod| pod.name_any().starts_with("flux-2-")).unwrap();
        let node = victim.spec.as_ref().unwrap().node_name.clone().unwrap();
        Api::<Node>::all(stage.client.clone()).delete(&node, &DeleteParams::default()).await.unwrap();
        stage.pass(600).await;
        let status = stage.minicluster("flux").await.status.unwrap();
        assert_eq!((status.ready, status.size), (3, 3), "the rank came back on another node");
        assert_eq!(stage.says("flux").await.0, "BrokersReady");
        let after = stage.pods().await.into_iter().find(|pod| pod.name_any().starts_with("flux-2-")).unwrap();
        assert_ne!(after.spec.unwrap().node_name, Some(node));
    });
}

/// Enough of Kueue for us to see that it is there.
fn kueue() -> CustomResourceDefinition {
    typed(json!({
        "metadata": {"name": "localqueues.kueue.x-k8s.io"},
        "spec": {
            "group": "kueue.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "LocalQueue", "plural": "localqueues", "singular": "localqueue"},
            "versions": [{"name": "v1beta2", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    }))
}

#[test]
fn a_queue_decides_when_there_is_one() {
    run(async {
        let settings = Settings { gang: true, ..Settings::default() };
        let spec = "{size: 2, jobLabels: {kueue.x-k8s.io/queue-name: team}, containers: [{image: app, command: a, \
                    resources: {limits: {cpu: 12}}}]}";
        let stage = Stage::with_crds(1, settings.clone(), &[kueue()]).await;
        stage.make("flux", spec, "10h").await;
        stage.pass(5).await;
        let api = stage.all::<k8s_openapi::api::batch::v1::Job>();
        // What Kueue does.
        let suspend = |suspend: bool| Patch::Merge(json!({"spec": {"suspend": suspend}}));
        api.patch("flux", &PatchParams::default(), &suspend(true)).await.unwrap();
        stage.pass(60).await;
        assert_eq!(stage.says("flux").await.0, "Suspended", "not held by us, though there is no room");
        stage.node("late").await;
        stage.pass(60).await;
        assert_eq!(stage.job("flux").await.unwrap().spec.unwrap().suspend, Some(true), "that is Kueue's to say");
        api.patch("flux", &PatchParams::default(), &suspend(false)).await.unwrap();
        stage.pass(60).await;
        assert_eq!(stage.says("flux").await.0, "BrokersReady");
        let without = Stage::new(1, settings).await;
        without.make("flux", spec, "10h").await;
        without.pass(60).await;
        assert_eq!(without.says("flux").await.0, "WaitingForRoom", "a label for nobody");
    });
}
