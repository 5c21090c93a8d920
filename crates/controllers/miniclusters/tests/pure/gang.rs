// SPDX-License-Identifier: Apache-2.0
//! All ranks or none, by us or by a queue.

use std::{sync::Arc, time::Duration};

use bivouac_api::flux::MiniCluster;
use bivouac_miniclusters::{GangThen, Settings, observe::World, plan::plan};
use bivouac_runtime::capabilities::Presence;
use k8s_openapi::{api::core::v1::Toleration, apimachinery::pkg::apis::meta::v1::Time};
use serde_json::json;

use crate::{
    fixtures::minicluster,
    plan::{Planned, at, empty, holds, job, made, planned, said, standing},
    room::node,
};

fn ganged(nodes: usize, settings: &Settings, second: i64, job: Option<bool>) -> Planned {
    let mut cluster = minicluster("size: 4\ncontainers: [{command: a, resources: {limits: {nvidia.com/gpu: 2}}}]");
    cluster.metadata.creation_timestamp = Some(Time(at(100)));
    let nodes = (0..nodes).map(|index| Arc::new(node(&format!("n{index}"), json!({})))).collect();
    let mut world = World { nodes, ..empty() };
    world.job = job.map(|suspended| {
        let mut job = made(&cluster, json!({}));
        job.spec.as_mut().unwrap().suspend = Some(suspended);
        job
    });
    plan(&cluster, &world, settings, at(second))
}

#[test]
fn a_gang_is_held_until_all_ranks_have_room() {
    let on = Settings { gang: true, ..Settings::default() };
    let release = Settings { gang_then: GangThen::Release, ..on.clone() };
    let suspended = |plan: &Planned| job(plan)["spec"].get("suspend").is_some();
    assert!(!suspended(&ganged(0, &Settings::default(), 100, None)), "not asked for");
    assert!(!suspended(&ganged(4, &on, 100, None)), "room at first sight: no extra write");
    let held = ganged(3, &on, 100, None);
    assert!(suspended(&held));
    assert_eq!(holds(&held), "WaitingForRoom: JobRequested JobWaitingForResources");
    assert!(
        said(&held).contains("there is room for 3 of 4 ranks: 3 nodes then out of nvidia.com/gpu"),
        "{}",
        said(&held)
    );
    assert!(suspended(&ganged(3, &on, 10_000, Some(true))), "it waits on");
    assert!(!suspended(&ganged(4, &on, 10_000, Some(true))), "room came");
    assert!(!suspended(&ganged(0, &on, 10_000, Some(false))), "what runs is never stopped");
    let early = ganged(3, &release, 120, Some(true));
    assert_eq!((suspended(&early), early.requeue), (true, Some(Duration::from_secs(40))));
    assert!(!suspended(&ganged(3, &release, 160, Some(true))), "released for an autoscaler to see");
}

#[test]
fn a_gang_can_be_asked_for_one_by_one_and_a_queue_goes_first() {
    let mut cluster = minicluster("size: 1\njobLabels: {a: b}");
    let suspends = |cluster: &MiniCluster, settings: &Settings| {
        job(&plan(cluster, &empty(), settings, at(0)))["spec"].get("suspend").is_some()
    };
    let on = Settings { gang: true, ..Settings::default() };
    let mark = |value: &str| Some([("bivouac.dev/gang".to_owned(), value.to_owned())].into());
    cluster.metadata.annotations = mark("true");
    assert!(suspends(&cluster, &Settings::default()));
    cluster.metadata.annotations = mark("false");
    assert!(!suspends(&cluster, &on));
    cluster.metadata.annotations = None;
    assert!(suspends(&cluster, &on));
    cluster.spec.job_labels = [("kueue.x-k8s.io/queue-name".to_owned(), "team".to_owned())].into();
    assert!(suspends(&cluster, &on), "without Kueue its label means nothing");
    let world = World { kueue: Presence::Served, ..empty() };
    assert!(job(&plan(&cluster, &world, &on, at(0)))["spec"].get("suspend").is_none());
}

#[test]
fn what_a_queue_changes_in_the_job_moves_us_to_no_write() {
    let mut cluster = minicluster("size: 2\npod: {nodeSelector: {a: b}}");
    cluster.spec.job_labels = [("kueue.x-k8s.io/queue-name".to_owned(), "team".to_owned())].into();
    let first = planned(&cluster, &World { kueue: Presence::Served, ..empty() });
    // What the server and Kueue add to the Job.
    let taken = |cluster: &MiniCluster| {
        let mut live = made(cluster, json!({}));
        let spec = live.spec.as_mut().unwrap();
        spec.suspend = Some(true);
        let pod = spec.template.spec.as_mut().unwrap();
        pod.termination_grace_period_seconds = Some(30);
        pod.node_selector.get_or_insert_default().insert("pool".into(), "spot".into());
        pod.tolerations.get_or_insert_default().push(Toleration { key: Some("pool".into()), ..Toleration::default() });
        World { kueue: Presence::Served, job: Some(live), ..empty() }
    };
    let plan = planned(&cluster, &taken(&cluster));
    assert_eq!(job(&plan), job(&first));
    assert_eq!(said(&plan), "the Job waits in the queue team; Kueue decides when it starts");
    let pod = cluster.spec.pod.get_or_insert_default();
    pod.tolerations = vec![serde_json::from_value(json!({"key": "mine"})).unwrap()];
    let template = |plan: &Planned| job(plan)["spec"]["template"]["spec"].clone();
    assert!(template(&planned(&cluster, &standing(&cluster, json!({})))).get("tolerations").is_some());
    let plan = planned(&cluster, &taken(&cluster));
    assert_eq!(template(&plan).get("tolerations"), None, "two writers cannot share this list");
}
