// SPDX-License-Identifier: Apache-2.0
//! From the first sight to the end, and away.

use std::time::Duration;

use bivouac_api::flux::MiniCluster;
use bivouac_miniclusters::Settings;
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Node, Pod, Secret},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::stage::{Stage, run};

const FOUR: &str = "{size: 4, containers: [{image: app, command: hostname}]}";

fn holds(minicluster: &MiniCluster, condition: &str) -> bool {
    let conditions = minicluster.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|one| one.type_ == condition && one.status == "True")
}

#[test]
fn a_minicluster_runs_to_completion() {
    run(async {
        let stage = Stage::new(4, Settings::default()).await;
        stage.asked();
        stage.make("flux", FOUR, "30s").await;
        stage.pass(20).await;
        let up = stage.minicluster("flux").await;
        let status = up.status.clone().unwrap();
        assert!(holds(&up, "JobMiniClusterReady") && holds(&up, "Ready"), "{status:?}");
        assert_eq!((status.size, status.maximum_size, status.ready), (4, 4, 4));
        assert!(status.start_time.is_some() && status.completion_time.is_none());
        stage.pass(60).await;
        let over = stage.minicluster("flux").await;
        let status = over.status.clone().unwrap();
        assert!(holds(&over, "JobFinished") && holds(&over, "Ready") && !holds(&over, "Failed"), "{status:?}");
        assert_eq!((status.exit_code, status.ready), (Some(0), 0));
        assert!(status.completion_time.is_some());
        assert_eq!(stage.events().await, ["BrokersReady", "Completed"]);
        let asked = stage.asked();
        let statuses = asked.iter().filter(|one| one.ends_with("/status")).count();
        assert!(statuses <= 3 && asked.len() <= 10, "{asked:#?}");
        stage.pass(3600).await;
        assert_eq!(stage.asked(), Vec::<String>::new(), "settled");
    });
}

#[test]
fn a_crowd_is_taken_in_before_all_but_its_first_start() {
    run(async {
        let stage = Stage::new(4, Settings::default()).await;
        let jobs = || stage.asked().iter().filter(|asked| asked.contains("/jobs/")).count();
        for number in 0..5 {
            stage.make(&format!("flux-{number}"), FOUR, "30s").await;
            tokio::time::sleep(Duration::from_millis(40)).await;
            assert_eq!(jobs(), usize::from(number == 0), "only the first starts, for {number} is not the last");
        }
        stage.pass(1).await;
        assert_eq!(jobs(), 4, "the others");
    });
}

#[test]
fn a_quick_run_takes_nine_requests() {
    run(async {
        let stage = Stage::new(4, Settings::default()).await;
        stage.asked();
        let quick = "{size: 4, containers: [{image: app, command: hostname}], \
                     pod: {annotations: {simulator.bivouac.dev/pull: 0s, simulator.bivouac.dev/boot: 0s}}}";
        stage.make("flux", quick, "5s").await;
        stage.pass(60).await;
        assert_eq!(stage.says("flux").await.0, "Completed");
        let asked = stage.asked();
        assert!(asked.len() <= 9, "{asked:#?}");
    });
}

#[test]
fn failed_work_is_a_failed_cluster_with_its_exit_code() {
    run(async {
        let stage = Stage::new(2, Settings::default()).await;
        let spec = "{size: 2, containers: [{image: app, command: hostname}], \
                    pod: {annotations: {simulator.bivouac.dev/exit-code: \"3\"}}}";
        stage.make("flux", spec, "10s").await;
        stage.pass(60).await;
        let failed = stage.minicluster("flux").await;
        let status = failed.status.clone().unwrap();
        assert!(holds(&failed, "Failed") && holds(&failed, "JobFinished") && !holds(&failed, "Ready"), "{status:?}");
        assert_eq!(status.exit_code, Some(3));
        assert!(stage.says("flux").await.1.starts_with("the lead broker ended with code 3"));
    });
}

#[test]
fn a_restart_over_a_settled_world_writes_nothing() {
    run(async {
        let stage = Stage::new(2, Settings::default()).await;
        stage.make("flux", "{size: 2, containers: [{image: app, command: sleep}]}", "10h").await;
        stage.pass(60).await;
        let secret = || async { stage.all::<Secret>().get("flux-curve").await.unwrap().data };
        let before = secret().await;
        stage.stop().await;
        stage.asked();
        stage.start();
        stage.pass(600).await;
        assert_eq!(stage.asked(), Vec::<String>::new());
        assert_eq!(secret().await, before, "the certificate is stable");
    });
}

#[test]
fn a_finished_cluster_cleans_up_if_asked() {
    run(async {
        let stage = Stage::new(2, Settings::default()).await;
        let spec = "{size: 2, cleanup: true, containers: [{image: app, command: hostname}]}";
        stage.make("flux", spec, "10s").await;
        stage.pass(10).await;
        assert!(stage.job("flux").await.is_some());
        stage.pass(60).await;
        assert!(stage.all::<MiniCluster>().get_opt("flux").await.unwrap().is_none());
        assert_eq!(stage.things().await, Vec::<String>::new());
        assert!(stage.events().await.contains(&"Completed".to_owned()), "its end was told");
    });
}

#[test]
fn deletion_at_every_stage_leaves_nothing() {
    run(async {
        for seconds in [0, 1, 2, 3, 5, 8, 20, 40, 90] {
            let stage = Stage::new(2, Settings::default()).await;
            let spec = "{size: 2, services: [{image: db, name: db}], containers: [{runFlux: true, image: app, command: a}, \
                        {name: web, image: web, ports: [80]}]}";
            stage.make("flux", spec, "30s").await;
            stage.pass(seconds).await;
            stage.delete("flux").await;
            stage.pass(120).await;
            assert_eq!(stage.things().await, Vec::<String>::new(), "after {seconds} s");
        }
    });
}

#[test]
fn a_lost_job_comes_back_but_done_work_does_not() {
    run(async {
        let stage = Stage::new(2, Settings::default()).await;
        stage.make("flux", FOUR, "60s").await;
        stage.pass(20).await;
        let first = stage.job("flux").await.unwrap().uid();
        stage.all::<Job>().delete("flux", &DeleteParams::default()).await.unwrap();
        stage.pass(60).await;
        let second = stage.job("flux").await.unwrap().uid();
        assert_ne!(first, second);
        stage.pass(120).await;
        assert_eq!(stage.says("flux").await.0, "Completed");
        stage.all::<Job>().delete("flux", &DeleteParams::default()).await.unwrap();
        stage.pass(300).await;
        assert!(stage.job("flux").await.is_none());
        assert_eq!(stage.says("flux").await.0, "Completed");
    });
}

#[test]
fn a_rank_leaves_a_node_before_it_is_gone() {
    run(async {
        let stage = Stage::new(3, Settings::default()).await;
        let wide = "{size: 2, interactive: true, containers: [{image: app, resources: {limits: {cpu: 12}}}]}";
        stage.make("flux", wide, "240h").await;
        stage.pass(30).await;
        let node_of = |pods: Vec<Pod>, rank: &str| {
            let label = "batch.kubernetes.io/job-completion-index";
            let mut pods = pods.into_iter().filter(|pod| pod.labels().get(label).is_some_and(|index| index == rank));
            pods.next().and_then(|pod| pod.spec?.node_name).unwrap_or_default()
        };
        let (lead, before) = (node_of(stage.pods().await, "0"), node_of(stage.pods().await, "1"));
        let notice =
            json!({"spec": {"taints": [{"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}]}});
        let nodes = Api::<Node>::all(stage.client.clone());
        nodes.patch(&before, &PatchParams::default(), &Patch::Merge(&notice)).await.unwrap();
        stage.pass(60).await;
        let after = node_of(stage.pods().await, "1");
        assert!(!after.is_empty() && after != before && after != lead, "{before} to {after}");
        assert_eq!(stage.says("flux").await.0, "BrokersReady");
        assert!(stage.events().await.contains(&"RankDrained".to_owned()));
        nodes.patch(&lead, &PatchParams::default(), &Patch::Merge(&notice)).await.unwrap();
        stage.asked();
        stage.pass(60).await;
        assert_eq!(node_of(stage.pods().await, "0"), lead, "the lead stays as long as it can");
        assert_eq!(stage.asked(), Vec::<String>::new());
    });
}
