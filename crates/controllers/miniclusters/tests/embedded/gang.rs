// SPDX-License-Identifier: Apache-2.0
//! All or nothing.

use bivouac_api::flux::MiniCluster;
use bivouac_miniclusters::{GangThen, Settings};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::stage::{Stage, run, typed};

/// Each of the four takes a node of its own.
const WIDE: &str = "{size: 4, containers: [{image: app, command: a, resources: {limits: {cpu: 12}}}]}";

fn gang() -> Settings {
    Settings { gang: true, ..Settings::default() }
}

fn is_suspended(job: &Job) -> bool {
    job.spec.as_ref().unwrap().suspend == Some(true)
}

#[test]
fn a_gang_waits_says_what_is_missing_and_starts_when_a_node_comes() {
    run(async {
        let stage = Stage::new(3, gang()).await;
        stage.make("flux", WIDE, "30s").await;
        stage.pass(300).await;
        assert!(is_suspended(&stage.job("flux").await.unwrap()));
        assert!(stage.pods().await.is_empty());
        let (reason, sentence) = stage.says("flux").await;
        assert_eq!(reason, "WaitingForRoom");
        assert_eq!(sentence, "the Job is held back: there is room for 3 of 4 ranks: 3 nodes then out of cpu");
        stage.asked();
        stage.pass(600).await;
        assert_eq!(stage.asked(), Vec::<String>::new(), "waiting costs nothing");
        stage.node("late").await;
        stage.pass(30).await;
        assert_eq!(stage.pods().await.len(), 4);
        stage.pass(120).await;
        assert_eq!(stage.says("flux").await.0, "Completed");
        let events = stage.events().await;
        assert_eq!(events.first().map(String::as_str), Some("WaitingForRoom"), "{events:?}");
        assert_eq!(events.last().map(String::as_str), Some("Completed"), "{events:?}");
    });
}

#[test]
fn room_at_first_sight_costs_no_write_more() {
    run(async {
        let stage = Stage::new(4, gang()).await;
        stage.make("flux", WIDE, "30s").await;
        stage.pass(10).await;
        let job = stage.job("flux").await.unwrap();
        assert!(!is_suspended(&job));
        let writes = stage.asked().into_iter().filter(|one| one.ends_with("/jobs/flux")).count();
        assert_eq!(writes, 1);
    });
}

#[test]
fn room_comes_with_the_end_of_others() {
    run(async {
        let stage = Stage::new(4, gang()).await;
        let other: Pod = typed(json!({
            "metadata": {"name": "other", "namespace": "default",
                "annotations": {"simulator.bivouac.dev/run": "10h"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "10"}}}]},
        }));
        stage.apply_in(&other).await;
        stage.pass(10).await;
        stage.make("flux", WIDE, "30s").await;
        stage.pass(60).await;
        assert_eq!(stage.says("flux").await.0, "WaitingForRoom");
        stage.all::<Pod>().delete("other", &DeleteParams::default()).await.unwrap();
        stage.pass(120).await;
        assert_eq!(stage.says("flux").await.0, "Completed");
    });
}

#[test]
fn after_the_hold_it_is_released_if_so_said() {
    run(async {
        let stage = Stage::new(3, Settings { gang_then: GangThen::Release, ..gang() }).await;
        stage.make("flux", WIDE, "10h").await;
        stage.pass(50).await;
        assert!(is_suspended(&stage.job("flux").await.unwrap()));
        stage.pass(30).await;
        assert!(!is_suspended(&stage.job("flux").await.unwrap()));
        assert_eq!(stage.pods().await.len(), 4, "one of them waits for a node that an autoscaler may bring");
    });
}

#[test]
fn one_minicluster_can_ask_for_it_alone() {
    run(async {
        let stage = Stage::new(3, Settings::default()).await;
        stage.make("plain", WIDE, "10h").await;
        let made = stage.make("flux", &WIDE.replace("size: 4", "size: 3, interactive: true"), "10h").await;
        let patch = json!({"metadata": {"annotations": {"bivouac.dev/gang": "true"}}});
        stage.delete(&made.name_any()).await;
        stage.pass(60).await;
        let mut asks: MiniCluster = made;
        asks.metadata = typed::<MiniCluster>(json!({"metadata": patch["metadata"], "spec": asks.spec})).metadata;
        asks.metadata.name = Some("asks".into());
        asks.metadata.namespace = Some("default".into());
        asks.status = None;
        stage.apply_in(&asks).await;
        stage.pass(60).await;
        assert!(!is_suspended(&stage.job("plain").await.unwrap()));
        assert!(is_suspended(&stage.job("asks").await.unwrap()));
        let stop = json!({"metadata": {"annotations": {"bivouac.dev/gang": "false"}}});
        let api = stage.all::<MiniCluster>();
        api.patch("asks", &PatchParams::default(), &Patch::Merge(&stop)).await.unwrap();
        stage.pass(10).await;
        assert!(!is_suspended(&stage.job("asks").await.unwrap()), "asked no longer");
    });
}

#[test]
fn two_gangs_that_come_together_do_not_take_the_same_room() {
    run(async {
        let stage = Stage::new(4, gang()).await;
        tokio::join!(stage.make("a", WIDE, "60s"), stage.make("b", WIDE, "60s"), stage.make("c", WIDE, "60s"));
        stage.pass(20).await;
        let mut running = Vec::new();
        for name in ["a", "b", "c"] {
            running.extend((!is_suspended(&stage.job(name).await.unwrap())).then_some(name));
        }
        assert_eq!(running, ["a"], "one of them runs, all of it");
        assert_eq!(stage.pods().await.len(), 4);
        let (reason, sentence) = stage.says("b").await;
        assert_eq!(reason, "WaitingForRoom", "{sentence}");
        stage.pass(600).await;
        for name in ["a", "b", "c"] {
            assert_eq!(stage.says(name).await.0, "Completed", "{name}: one after the other");
        }
    });
}

#[test]
fn a_gang_that_leaves_the_line_lets_the_next_one_start() {
    run(async {
        let stage = Stage::new(3, gang()).await;
        stage.make("a", WIDE.replace("size: 4", "size: 2").as_str(), "10h").await;
        stage.pass(10).await;
        stage.make("b", WIDE.replace("size: 4", "size: 1").as_str(), "10h").await;
        stage.make("c", WIDE.replace("size: 4", "size: 1").as_str(), "10h").await;
        stage.pass(60).await;
        assert_eq!(stage.says("c").await.0, "WaitingForRoom");
        stage.delete("b").await;
        stage.pass(60).await;
        assert!(!is_suspended(&stage.job("c").await.unwrap()));
    });
}
