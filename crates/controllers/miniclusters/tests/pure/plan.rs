// SPDX-License-Identifier: Apache-2.0
//! What a MiniCluster means in each kind of world.

use bivouac_api::flux::{MiniCluster, MiniClusterStatus};
use bivouac_miniclusters::{
    Settings,
    certificate::Certificate,
    observe::{Rank, Refusal, World},
    plan::{Effect, plan},
};
use bivouac_runtime::{
    Plan,
    reconcile::{Category, Child, Only},
};
use jiff::Timestamp;
use k8s_openapi::{
    api::batch::v1::Job,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use serde_json::{Value, json};

use crate::fixtures::minicluster;

pub type Planned = Plan<MiniClusterStatus, Effect>;

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub fn empty() -> World {
    World::empty(Certificate::new([7; 32], "flux-sample-0"))
}

pub fn planned(minicluster: &MiniCluster, world: &World) -> Planned {
    plan(minicluster, world, &Settings::default(), at(1000))
}

/// The Job as a first pass made it, with a status.
pub fn made(minicluster: &MiniCluster, status: Value) -> Job {
    let plan = planned(minicluster, &empty());
    let job = plan.children().find(|child| child.resource.kind == "Job").unwrap();
    let mut job: Job = serde_json::from_value(job.body.clone()).unwrap();
    job.status = serde_json::from_value(status).unwrap();
    job
}

/// A world in which the Job of this MiniCluster stands.
pub fn standing(minicluster: &MiniCluster, status: Value) -> World {
    World { job: Some(made(minicluster, status)), is_certificate_stored: true, ..empty() }
}

/// The same MiniCluster after it was seen with this maximum.
fn known(mut minicluster: MiniCluster, maximum_size: i32) -> MiniCluster {
    minicluster.status = Some(MiniClusterStatus { maximum_size, ..MiniClusterStatus::default() });
    minicluster
}

/// The same MiniCluster after the plan told its status.
pub fn told(minicluster: &MiniCluster, plan: &Planned) -> MiniCluster {
    let mut told = minicluster.clone();
    let conditions = plan.conditions.iter().map(|verdict| Condition {
        type_: verdict.type_.into(),
        status: verdict.status.as_str().into(),
        reason: verdict.reason.into(),
        message: verdict.message.clone(),
        last_transition_time: Time(at(1000)),
        observed_generation: minicluster.metadata.generation,
    });
    told.status = plan.status.clone().map(|status| MiniClusterStatus { conditions: conditions.collect(), ..status });
    told
}

/// The conditions that hold, with the reason they share.
pub fn holds(plan: &Planned) -> String {
    let truths = plan.conditions.iter().filter(|verdict| verdict.status.as_str() == "True");
    let names: Vec<_> = truths.map(|verdict| verdict.type_).collect();
    format!("{}: {}", plan.conditions[0].reason, names.join(" "))
}

pub fn said(plan: &Planned) -> String {
    plan.conditions.iter().find(|verdict| verdict.type_ == "Ready").unwrap().message.clone()
}

pub fn names(plan: &Planned) -> Vec<String> {
    plan.children().map(|child| format!("{} {}", child.resource.kind, child.key.name)).collect()
}

pub fn job(plan: &Planned) -> &Value {
    &plan.children().find(|child| child.resource.kind == "Job").unwrap().body
}

pub fn ended(type_: &str, reason: &str) -> Value {
    json!({"conditions": [{"type": type_, "status": "True", "reason": reason, "message": "so it is"}]})
}

#[test]
fn all_children_come_in_one_round() {
    let full = minicluster(
        "size: 4\nservices: [{image: nginx, name: nginx}]\ncontainers: [{runFlux: true, command: a}, {name: web, ports: \
         [80]}]",
    );
    let plan = planned(&full, &empty());
    assert_eq!(plan.stages.len(), 1);
    assert_eq!(
        names(&plan),
        [
            "ConfigMap flux-sample-entrypoint",
            "Service flux-sample",
            "Secret flux-sample-curve",
            "Service web",
            "Pod flux-sample-services",
            "Job flux-sample"
        ]
    );
    let only = |child: &Child| child.only == Only::IfOurs;
    assert!(plan.children().all(only), "two passes must never bring two keys, and nothing of others is taken");
    assert!(job(&plan)["spec"].get("suspend").is_none(), "no field of Kueue is ours");
    let status = plan.status.as_ref().unwrap();
    assert_eq!((status.size, status.maximum_size, status.selector.as_str()), (4, 4, "hpa-selector=flux-sample"));
    assert_eq!(status.observed_generation, Some(3));
    assert!(plan.prune && plan.effects.is_empty() && plan.requeue.is_none());
}

#[test]
fn defect_2_the_conditions_follow_the_whole_life() {
    let four = minicluster("size: 4");
    let queued = {
        let mut world = standing(&four, json!({}));
        world.job.as_mut().unwrap().spec.as_mut().unwrap().suspend = Some(true);
        world
    };
    let refusal = |category| World { refusals: vec![Refusal { category, text: "no".into() }], ..empty() };
    let cases = [
        (empty(), "BrokersStarting: JobRequested JobWaitingForResources"),
        (standing(&four, json!({"active": 4})), "BrokersStarting: JobRequested JobWaitingForResources"),
        (queued, "Suspended: JobRequested JobWaitingForResources"),
        (standing(&four, json!({"ready": 3})), "BrokersStarting: JobRequested JobWaitingForResources JobRunning"),
        (standing(&four, json!({"ready": 4})), "BrokersReady: JobRequested JobRunning JobMiniClusterReady Ready"),
        (standing(&four, ended("SuccessCriteriaMet", "")), "Completed: JobRequested JobFinished Ready"),
        (standing(&four, ended("Complete", "")), "Completed: JobRequested JobFinished Ready"),
        (standing(&four, ended("Failed", "PodFailurePolicy")), "WorkFailed: JobRequested JobFinished Failed"),
        (
            standing(&four, ended("FailureTarget", "DeadlineExceeded")),
            "DeadlineExceeded: JobRequested JobFinished Failed",
        ),
        (refusal(Category::Conflict), "BrokersStarting: JobRequested JobWaitingForResources"),
    ];
    for (world, expected) in cases {
        let plan = planned(&four, &world);
        assert_eq!(holds(&plan), expected);
        assert_eq!(plan.conditions.len(), 7);
        let begins = expected.starts_with("BrokersStarting");
        assert_eq!(plan.events.len(), usize::from(!begins), "the beginning is no transition");
    }
    let told = planned(
        &four,
        &World { refusals: vec![Refusal { category: Category::Invalid, text: "no".into() }], ..empty() },
    );
    assert_eq!((holds(&told), said(&told)), ("ReconcileError: ".into(), "no".into()));
}

#[test]
fn defect_1_the_exit_code_is_told() {
    let one = minicluster("size: 1");
    let lead = Rank { pod: "a".into(), uid: "u".into(), index: "0".into(), exit_code: Some(3), ..Rank::default() };
    let world = World { ranks: vec![lead], ..standing(&one, ended("Failed", "PodFailurePolicy")) };
    assert_eq!(said(&planned(&one, &world)), "the lead broker ended with code 3: so it is");
}

#[test]
fn defect_2_an_invalid_spec_is_a_condition_and_touches_nothing() {
    let wrong = minicluster("size: 0\ntasks: -1");
    let plan = planned(&wrong, &standing(&minicluster("size: 2"), json!({})));
    assert_eq!(holds(&plan), "InvalidSpec: Failed");
    assert!(names(&plan).is_empty() && !plan.prune);
    assert_eq!(plan.status.as_ref().unwrap().size, 2);
    assert!(plan.events[0].warning);
}

#[test]
fn defect_12_what_is_not_ours_is_not_taken() {
    let one = minicluster("size: 1\ncontainers: [{runFlux: true}, {name: web, ports: [80]}]");
    for (kind, name) in [("Service", "flux-sample"), ("Job", "flux-sample"), ("Secret", "flux-sample-curve")] {
        let plan = planned(&one, &World { strangers: [(kind, name.to_owned())].into(), ..empty() });
        assert_eq!(holds(&plan), "NameTaken: ");
        assert!(names(&plan).is_empty() && !plan.prune);
        assert!(said(&plan).contains(&format!("{kind} {name} exists and is not ours")));
    }
    let plan = planned(&one, &World { strangers: [("Service", "web".to_owned())].into(), ..empty() });
    assert!(names(&plan).contains(&"Service flux-sample-web".to_owned()), "{:?}", names(&plan));
}

#[test]
fn resizing_stays_between_one_and_the_maximum() {
    for (wish, runs, denied) in [(2, 2, false), (4, 4, false), (9, 4, true), (0, 3, true), (-5, 3, true)] {
        let mut resized = known(minicluster("size: 3\nmaxSize: 4"), 4);
        let world = standing(&resized, json!({}));
        resized.spec.size = wish;
        let plan = planned(&resized, &world);
        let spec = &job(&plan)["spec"];
        assert_eq!((&spec["parallelism"], &spec["completions"]), (&json!(runs), &json!(runs)), "{wish}");
        assert_eq!(plan.effects.contains(&Effect::SetSize { size: runs }), denied, "{wish}");
        assert_eq!(plan.deeds.iter().any(|note| note.reason == "SizeDenied"), denied);
        let status = plan.status.as_ref().unwrap();
        assert_eq!((status.size, status.maximum_size), (runs, 4));
    }
}

#[test]
fn a_lost_job_comes_back_with_at_least_its_lead() {
    let mut cluster = known(minicluster("size: 3"), 3);
    cluster.spec.size = 0;
    let plan = planned(&cluster, &empty());
    assert_eq!(job(&plan)["spec"]["parallelism"], json!(1));
    assert_eq!(plan.effects, [Effect::SetSize { size: 1 }]);
}

#[test]
fn defect_10_an_edit_that_pods_cannot_follow_is_told() {
    let before = known(minicluster("size: 2\nmaxSize: 4"), 4);
    let world = standing(&before, json!({"ready": 2}));
    let mut after = known(minicluster("size: 3\nmaxSize: 4\ndeadlineSeconds: 60"), 4);
    after.spec.containers[0].image = "another".into();
    let plan = planned(&after, &world);
    assert!(said(&plan).ends_with("takes effect in a new MiniCluster"), "{}", said(&plan));
    let (spec, live) = (&job(&plan)["spec"], json!(world.job));
    assert_eq!(spec["template"], live["spec"]["template"]);
    assert_eq!(job(&plan)["metadata"]["annotations"], live["metadata"]["annotations"]);
    assert_eq!((&spec["parallelism"], &spec["activeDeadlineSeconds"]), (&json!(3), &json!(60)));
    assert!(!plan.prune);
}

#[test]
fn a_job_of_the_original_is_taken_over_as_it_is() {
    let old = minicluster("size: 2");
    let mut world = standing(&old, json!({"ready": 2}));
    let live = world.job.as_mut().unwrap();
    live.metadata.annotations = None;
    let spec = live.spec.as_mut().unwrap();
    (spec.success_policy, spec.pod_failure_policy) = (None, None);
    spec.template.spec.as_mut().unwrap().restart_policy = Some("OnFailure".into());
    let plan = planned(&old, &world);
    let spec = &job(&plan)["spec"];
    assert_eq!(spec["template"]["spec"]["restartPolicy"], json!("OnFailure"));
    assert!(spec.get("successPolicy").is_none() && spec.get("podFailurePolicy").is_none());
}

#[test]
fn defect_11_the_quorum_follows_the_size() {
    let script = |size: i32| {
        let mut cluster = known(minicluster("size: 4\nmaxSize: 8"), 8);
        let world = standing(&cluster, json!({}));
        cluster.spec.size = size;
        let plan = planned(&cluster, &world);
        plan.stages[0][0].body["data"]["wait-0"].as_str().unwrap().to_owned()
    };
    assert!(script(4).contains("-Sbroker.quorum=4 "));
    assert!(script(2).contains("-Sbroker.quorum=2 ") && script(2).contains("op_flags='-n1'"));
    let ready = |min: &str| {
        let cluster = minicluster(&format!("size: 4\n{min}"));
        holds(&planned(&cluster, &standing(&cluster, json!({"ready": 2}))))
    };
    assert!(ready("minSize: 2").starts_with("BrokersReady"));
    assert!(ready("").starts_with("BrokersStarting"));
}

#[test]
fn defect_5_ranks_are_labelled_where_it_matters() {
    let rank = |index: &str, label: Option<&str>| Rank {
        pod: format!("flux-sample-{index}-x"),
        uid: format!("uid-{index}"),
        index: index.into(),
        label: label.map(str::to_owned),
        ..Rank::default()
    };
    let labelled = |ranks: Vec<Rank>, selected: bool, all: bool| {
        let world = World { ranks, is_index_selected: selected, ..empty() };
        let settings = Settings { label_all_pods: all, ..Settings::default() };
        let plan = plan(&minicluster("size: 3"), &world, &settings, at(0));
        let index = |effect: &Effect| match effect {
            Effect::Label { index, .. } => index.clone(),
            other => panic!("{other:?}"),
        };
        plan.effects.iter().map(index).collect::<Vec<_>>().join(" ")
    };
    let fresh = || vec![rank("0", None), rank("1", None), rank("2", None)];
    assert_eq!(labelled(fresh(), false, false), "0");
    assert_eq!(labelled(fresh(), true, false), "0 1 2");
    assert_eq!(labelled(fresh(), false, true), "0 1 2");
    assert_eq!(labelled(vec![rank("0", Some("0")), rank("1", Some("7"))], false, false), "1", "never a wrong one");
}

#[test]
fn defect_6_cleanup_follows_the_job_not_a_name() {
    let cluster = minicluster("cleanup: true");
    let deletes = |cluster: &MiniCluster, status: Value| {
        let plan = planned(cluster, &standing(cluster, status.clone()));
        assert!(!plan.effects.contains(&Effect::Delete), "not before its end was told");
        planned(&told(cluster, &plan), &standing(cluster, status)).effects.contains(&Effect::Delete)
    };
    assert!(!deletes(&cluster, json!({"ready": 1})));
    assert!(deletes(&cluster, ended("Complete", "")));
    assert!(deletes(&cluster, ended("Failed", "")));
    assert!(!deletes(&minicluster("size: 1"), ended("Complete", "")));
}

#[test]
fn a_finished_cluster_keeps_its_size() {
    let mut cluster = known(minicluster("size: 2\nmaxSize: 4"), 4);
    let world = standing(&cluster, ended("Complete", ""));
    cluster.spec.size = 4;
    let plan = planned(&cluster, &world);
    assert_eq!(job(&plan)["spec"]["parallelism"], json!(2));
    assert!(plan.effects.is_empty());
}

#[test]
fn the_users_certificate_is_used() {
    let given = Certificate::new([9; 32], "x");
    let cluster = minicluster(&format!("flux: {{curveCert: {:?}}}", given.as_text()));
    let plan = planned(&cluster, &empty());
    let secret = plan.children().find(|child| child.resource.kind == "Secret").unwrap();
    let bytes: k8s_openapi::ByteString = serde_json::from_value(secret.body["data"]["curve.cert"].clone()).unwrap();
    assert_eq!(bytes.0, given.as_text().as_bytes());
}

#[test]
fn scripts_that_no_config_map_holds_are_refused() {
    let cluster = minicluster(&format!("containers: [{{command: {}}}]", "a".repeat(1_000_000)));
    let plan = planned(&cluster, &empty());
    assert_eq!(holds(&plan), "InvalidSpec: Failed");
    assert!(said(&plan).contains("too large for a ConfigMap"));
}

#[test]
fn a_job_on_its_way_out_is_waited_for() {
    let one = minicluster("size: 1");
    let mut world = standing(&one, json!({}));
    world.job.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(5)));
    let plan = planned(&one, &world);
    assert!(!names(&plan).contains(&"Job flux-sample".to_owned()) && !plan.prune);
}
