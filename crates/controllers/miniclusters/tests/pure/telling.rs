// SPDX-License-Identifier: Apache-2.0
//! What the status tells, and when.

use bivouac_api::flux::MiniCluster;
use bivouac_miniclusters::observe::{Rank, World};
use serde_json::{Value, json};

use crate::{
    fixtures::minicluster,
    plan::{empty, ended, names, planned, standing, told},
};

#[test]
fn the_status_tells_what_became_of_the_work() {
    let one = minicluster("size: 1");
    let status = |status: Value, code: Option<i32>| {
        let lead = Rank { pod: "a".into(), uid: "u".into(), index: "0".into(), exit_code: code, ..Rank::default() };
        planned(&one, &World { ranks: vec![lead], ..standing(&one, status) }).status.unwrap()
    };
    let running = status(json!({"ready": 1, "startTime": "2026-01-01T00:00:00Z"}), None);
    assert_eq!((running.ready, running.exit_code, running.completion_time), (1, None, None));
    assert!(running.start_time.is_some());
    let mut well = ended("SuccessCriteriaMet", "");
    well["conditions"][0]["lastTransitionTime"] = json!("2026-01-01T00:01:00Z");
    let well = status(well, Some(0));
    assert_eq!((well.ready, well.exit_code, well.completion_time.is_some()), (0, Some(0), true));
    assert_eq!(status(ended("Failed", "PodFailurePolicy"), Some(3)).exit_code, Some(3));
}

#[test]
fn an_exit_code_outlives_its_pod() {
    let one = minicluster("size: 1");
    let world = standing(&one, ended("Failed", "PodFailurePolicy"));
    let lead = Rank { pod: "a".into(), uid: "u".into(), index: "0".into(), exit_code: Some(3), ..Rank::default() };
    let seen = planned(&one, &World { ranks: vec![lead], ..standing(&one, ended("Failed", "PodFailurePolicy")) });
    assert_eq!(planned(&told(&one, &seen), &world).status.unwrap().exit_code, Some(3));
}

#[test]
fn work_that_is_done_is_not_done_again_when_its_job_is_gone() {
    let one = minicluster("size: 1");
    let over = told(&one, &planned(&one, &standing(&one, ended("Complete", ""))));
    let plan = planned(&over, &empty());
    assert!(!names(&plan).contains(&"Job flux-sample".to_owned()));
    assert!(plan.status.is_none() && !plan.prune, "what it said stays");
    let running = told(&one, &planned(&one, &standing(&one, json!({"ready": 1}))));
    assert!(names(&planned(&running, &empty())).contains(&"Job flux-sample".to_owned()));
}

#[test]
fn ends_are_told_at_once_and_small_steps_wait_for_larger_ones() {
    let four = minicluster("size: 4");
    let patience =
        |cluster: &MiniCluster, status: Value| planned(cluster, &standing(cluster, status)).patience.as_secs();
    assert_eq!(patience(&four, json!({})), 5, "a quick start needs no word of its own");
    assert_eq!(patience(&four, json!({"ready": 4})), 1);
    let starting = told(&four, &planned(&four, &standing(&four, json!({}))));
    assert_eq!(patience(&starting, json!({"ready": 2})), 10);
    assert_eq!(patience(&starting, json!({"ready": 4})), 1);
    assert_eq!(patience(&starting, ended("Complete", "")), 0);
    assert_eq!(patience(&starting, ended("Failed", "PodFailurePolicy")), 1, "the exit code may come");
}
