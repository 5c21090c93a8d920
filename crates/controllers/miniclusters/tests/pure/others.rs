// SPDX-License-Identifier: Apache-2.0
//! What others do to a cluster: they come first, or take a node away.

use std::{sync::Arc, time::Duration};

use bivouac_miniclusters::{
    Settings,
    observe::{Rank, World},
    plan::{Effect, plan},
    rivals::{Other, before},
    room::Rival,
};
use bivouac_runtime::capabilities::Presence;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::{
    fixtures::minicluster,
    plan::{at, empty, ended, job, made, planned, said, standing},
    room::node,
};

#[test]
fn ranks_leave_a_node_that_goes_away() {
    let one = minicluster("size: 4\ncontainers: [{image: a, command: b}]");
    let rank = |index: &str, node: &str| Rank {
        pod: format!("flux-{index}"),
        uid: format!("uid-{index}"),
        index: index.into(),
        label: Some(index.into()),
        node: Some(node.into()),
        ..Rank::default()
    };
    let ending = Rank { is_ending: true, ..rank("3", "going") };
    let ranks = vec![rank("0", "going"), rank("1", "going"), rank("2", "staying"), ending];
    let world = World { ranks, going: ["going".to_owned()].into(), ..standing(&one, json!({"ready": 4})) };
    let plan = planned(&one, &world);
    let only = Effect::Evict { pod: "flux-1".into(), uid: "uid-1".into(), index: "1".into(), node: "going".into() };
    assert_eq!(plan.effects, [only], "the lead stays as long as it can, and nobody is sent twice");
    let told: Vec<_> = plan.deeds.iter().map(|deed| (deed.reason, deed.text.as_str())).collect();
    assert_eq!(told, [("RankDrained", "rank 1 leaves node going, which goes away; it comes back on another one")]);
    let over = World { job: Some(made(&one, ended("Complete", "CompletionsReached"))), ..world };
    assert_eq!(planned(&one, &over).effects, [], "what is over is left alone");
}

#[test]
fn a_gang_waits_for_those_who_come_first() {
    let on = Settings { gang: true, ..Settings::default() };
    let one = minicluster("size: 2\ncontainers: [{image: a, command: b, resources: {limits: {cpu: 4}}}]");
    let nodes = (0..3).map(|n| Arc::new(node(&format!("n{n}"), json!({})))).collect();
    let pod = || serde_json::from_value(json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "4"}}}]}));
    let rival = |count, has_started| Rival { pod: pod().unwrap(), count, has_started };
    let mut world = World { nodes, ..empty() };
    let suspended = |world: &World| job(&plan(&one, world, &on, at(0)))["spec"].get("suspend").is_some();
    assert!(!suspended(&world));
    world.rivals = vec![rival(2, false)];
    let held = plan(&one, &world, &on, at(0));
    assert!(suspended(&world));
    assert!(
        said(&held).contains("room for 1 of 2 ranks after another MiniCluster that comes first"),
        "{}",
        said(&held)
    );
    assert_eq!(held.requeue, Some(Duration::from_secs(10)), "it may leave without a word");
    world.rivals = vec![rival(4, false)];
    assert!(!suspended(&world), "who does not fit as a whole keeps nobody waiting");
    world.rivals = vec![rival(4, true)];
    assert!(suspended(&world), "who has started takes what it can");
}

#[test]
fn who_has_started_comes_first_and_then_who_is_older() {
    let on = Settings { gang: true, ..Settings::default() };
    let named = |name: &str, second: i64, size: i32| {
        let mut one = minicluster(&format!("size: {size}\ncontainers: [{{image: a, command: b}}]"));
        one.metadata.name = Some(name.into());
        one.metadata.creation_timestamp = Some(Time(at(second)));
        one
    };
    let (older, younger, one) = (named("older", 1, 11), named("younger", 9, 12), named("one", 5, 1));
    let (started, queued, done) = (named("started", 9, 13), named("queued", 1, 14), named("done", 1, 15));
    let queued = {
        let mut queued = queued;
        queued.spec.job_labels = [("kueue.x-k8s.io/queue-name".to_owned(), "team".to_owned())].into();
        queued
    };
    let other = |minicluster, job, placed| Other { minicluster, job, placed };
    let others = || {
        vec![
            other(&younger, None, 0),
            other(&older, None, 0),
            other(&queued, None, 0),
            other(&done, Some(made(&done, ended("Complete", "CompletionsReached"))), 0),
            other(&started, Some(made(&started, json!({}))), 3),
        ]
    };
    let counts = |settings: &Settings| -> Vec<i32> {
        before(&one, others(), settings, Presence::Served).iter().map(|rival| rival.count).collect()
    };
    assert_eq!(counts(&on), [10, 11], "pods without a node of who has started, then the older one");
    assert_eq!(counts(&Settings::default()), [10], "who is no gang does not wait");
    let twin = named("twin", 5, 2);
    let seen_by = |one, other| before(one, vec![other], &on, Presence::Absent).len();
    let both = (seen_by(&one, other(&twin, None, 0)), seen_by(&twin, other(&one, None, 0)));
    assert_eq!(both, (0, 1), "of the same age, exactly one comes first");
}
