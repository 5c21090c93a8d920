// SPDX-License-Identifier: Apache-2.0
//! MiniClusters in the queue of a real Kueue.

use std::{collections::BTreeMap, time::Duration};

use bivouac_api::flux::MiniCluster;
use bivouac_testenv::Options;
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Node, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::life::{AGENT, Stage, says, typed};

const OURS: &str = "bivouac-miniclusters";

fn kueue(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("kueue.x-k8s.io", "v1beta2", kind))
}

async fn create(stage: &Stage, kind: &str, name: &str, spec: Value) {
    let (client, resource) = (stage.cluster.client(), kueue(kind));
    let api = match kind {
        "LocalQueue" => Api::namespaced_with(client, "default", &resource),
        _ => Api::<DynamicObject>::all_with(client, &resource),
    };
    let object = DynamicObject::new(name, &resource).data(json!({"spec": spec}));
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// A queue with room for one MiniCluster, on nodes that only its Jobs may use.
async fn queue(stage: &Stage) {
    let spot = json!({"nodeLabels": {"pool": "spot"}, "tolerations": [{"key": "pool", "operator": "Exists"}]});
    create(stage, "ResourceFlavor", "spot", spot).await;
    let quota = json!({"name": "spot", "resources": [{"name": "cpu", "nominalQuota": 4}]});
    let groups = json!([{"coveredResources": ["cpu"], "flavors": [quota]}]);
    create(stage, "ClusterQueue", "all", json!({"namespaceSelector": {}, "resourceGroups": groups})).await;
    create(stage, "LocalQueue", "team", json!({"clusterQueue": "all"})).await;
}

/// `HoldAndDrain` puts out who is in; `None` opens the queue again.
async fn set_stop(stage: &Stage, policy: &str) {
    let api = Api::<DynamicObject>::all_with(stage.cluster.client(), &kueue("ClusterQueue"));
    let patch = Patch::Merge(json!({"spec": {"stopPolicy": policy}}));
    api.patch("all", &PatchParams::default(), &patch).await.unwrap();
}

async fn node(stage: &Stage) {
    let room = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
    let node = json!({
        "metadata": {
            "name": "spot-1", "labels": {"pool": "spot"}, "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": [{"key": "pool", "value": "spot", "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room},
    });
    Api::<Node>::all(stage.cluster.client()).create(&PostParams::default(), &typed(node)).await.unwrap();
}

fn spec() -> Value {
    json!({
        "size": 2,
        "jobLabels": {"kueue.x-k8s.io/queue-name": "team"},
        "containers": [{"image": "app", "command": "sleep 1", "resources": {"limits": {"cpu": 2}}}],
    })
}

fn is_suspended(jobs: &[Job], name: &str) -> Option<bool> {
    jobs.iter().find(|job| job.name_any() == name)?.spec.as_ref()?.suspend
}

fn ready(minicluster: &MiniCluster) -> Option<(&str, &str)> {
    let ready = minicluster.status.as_ref()?.conditions.iter().find(|one| one.type_ == "Ready")?;
    Some((&ready.reason, &ready.message))
}

fn says_it_waits(minicluster: &MiniCluster) -> bool {
    ready(minicluster) == Some(("Suspended", "the Job waits in the queue team; Kueue decides when it starts"))
}

fn pods_of<'a>(pods: &'a [Pod], name: &str) -> Vec<&'a Pod> {
    pods.iter().filter(|pod| pod.name_any().starts_with(&format!("{name}-"))).collect()
}

/// How often the operator wrote what, as `patch jobs first`.
pub fn writes(stage: &Stage) -> BTreeMap<String, usize> {
    let log = std::fs::read_to_string(stage.cluster.audit_log().unwrap()).unwrap();
    let mut writes = BTreeMap::new();
    for line in log.lines() {
        // The last line may be half written.
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        let [verb, agent] = ["verb", "userAgent"].map(|key| event[key].as_str().unwrap_or_default());
        if agent == AGENT && !["get", "list", "watch"].contains(&verb) {
            let [what, name] = ["resource", "name"].map(|key| event["objectRef"][key].as_str().unwrap_or_default());
            *writes.entry(format!("{verb} {what} {name}")).or_default() += 1;
        }
    }
    writes
}

/// `suspend` and the place in the nodes are Kueue's; the size is ours.
fn assert_fields(job: &Job) {
    let owns = |path: &[&str]| {
        let entries = job.managed_fields().iter().filter(|entry| entry.manager.as_deref() == Some(OURS));
        let fields = entries.filter_map(|entry| entry.fields_v1.as_ref());
        fields.into_iter().any(|fields| path.iter().try_fold(&fields.0, |value, key| value.get(key)).is_some())
    };
    assert!(owns(&["f:spec", "f:parallelism"]), "{job:#?}");
    assert!(!owns(&["f:spec", "f:suspend"]), "{job:#?}");
    assert!(!owns(&["f:spec", "f:template", "f:spec", "f:nodeSelector"]), "{job:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_queue_lets_one_in_after_the_other() {
    let stage = Stage::with(Options { audit: true, kueue: true, ..Options::default() }).await;
    queue(&stage).await;
    stage.make("first", spec()).await;
    // There is no node yet, so the first one stays in the quota for as long as we like.
    stage.until::<Pod>("the pods of the first", |pods| pods_of(pods, "first").len() == 2).await;
    stage.make("second", spec()).await;
    stage
        .until::<MiniCluster>("what both say", |all| {
            let starts = |one: &MiniCluster| ready(one).is_some_and(|(reason, _)| reason == "BrokersStarting");
            all.len() == 2
                && all.iter().all(|one| if one.name_any() == "first" { starts(one) } else { says_it_waits(one) })
        })
        .await;

    // The last event may still be on its way.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = writes(&stage);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(writes(&stage), before, "nothing happens, so there is nothing to write");
    let jobs = stage.until::<Job>("two Jobs", |jobs| jobs.len() == 2).await;
    assert_eq!((is_suspended(&jobs, "first"), is_suspended(&jobs, "second")), (Some(false), Some(true)));
    jobs.iter().for_each(assert_fields);
    let pods = stage.until::<Pod>("the pods of the first only", |pods| pods.len() == 2).await;
    assert_eq!(pods_of(&pods, "second").len(), 0);

    set_stop(&stage, "HoldAndDrain").await;
    stage.until::<MiniCluster>("both wait", |all| all.iter().all(says_it_waits)).await;
    let jobs = stage.until::<Job>("two Jobs", |jobs| jobs.len() == 2).await;
    assert_eq!((is_suspended(&jobs, "first"), is_suspended(&jobs, "second")), (Some(true), Some(true)));
    set_stop(&stage, "None").await;

    node(&stage).await;
    stage.until::<MiniCluster>("the end of both", |all| all.iter().all(|one| says(one, "JobFinished"))).await;
    let pods = stage.until::<Pod>("all pods", |pods| pods_of(pods, "second").len() == 2).await;
    let place = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    assert!(pods.iter().all(|pod| place(pod).as_deref() == Some("spot-1")), "{pods:#?}");
    let jobs = stage.until::<Job>("two Jobs", |jobs| jobs.len() == 2).await;
    jobs.iter().for_each(assert_fields);
    let (mut all, jobs) = (writes(&stage), ["patch jobs first", "patch jobs second"]);
    all.retain(|what, _| what.contains(" jobs "));
    assert_eq!(all, jobs.map(|what| (what.to_owned(), 1)).into(), "made, and never touched again");
}
