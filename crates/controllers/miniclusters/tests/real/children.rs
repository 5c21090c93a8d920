// SPDX-License-Identifier: Apache-2.0
//! A real API server takes every child of every sample, and every way in which a Job may change.

use std::path::{Path, PathBuf};

use bivouac_api::flux::{MiniCluster, MiniClusterStatus};
use bivouac_miniclusters::{
    Settings,
    certificate::Certificate,
    observe::World,
    plan::{Effect, plan},
};
use bivouac_runtime::Plan;
use bivouac_testenv::{TestCluster, TestNamespace};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::Value;

fn planned(minicluster: &MiniCluster, job: Option<Job>) -> Plan<MiniClusterStatus, Effect> {
    let world = World { job, ..World::empty(Certificate::new([7; 32], "flux-sample-0")) };
    plan(minicluster, &world, &Settings::default(), Timestamp::UNIX_EPOCH)
}

/// Applies all children as the runtime does it, and gives back the Job.
async fn apply(cluster: &TestCluster, plan: &Plan<MiniClusterStatus, Effect>, what: &str) -> Job {
    let mut job = None;
    for child in plan.children() {
        let api = Api::<DynamicObject>::namespaced_with(cluster.client(), &child.key.namespace, &child.resource);
        let params = PatchParams::apply("bivouac-miniclusters").force();
        let applied = api.patch(&child.key.name, &params, &Patch::Apply(&child.body)).await;
        let applied =
            applied.unwrap_or_else(|error| panic!("{what}: {} {}: {error}", child.resource.kind, child.key.name));
        if child.resource.kind == "Job" {
            job = Some(serde_json::from_value(serde_json::to_value(applied).unwrap()).unwrap());
        }
    }
    job.unwrap()
}

async fn stage() -> (TestCluster, TestNamespace) {
    let cluster = TestCluster::shared().await.unwrap();
    let namespace = cluster.namespace("miniclusters").await.unwrap();
    (cluster, namespace)
}

#[tokio::test]
async fn the_children_of_every_sample_are_taken() {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared");
    let shared = std::env::var_os("BIVOUAC_SHARED").map_or_else(default, PathBuf::from);
    let Ok(folder) = std::fs::read_dir(shared.join("contracts/samples/flux-framework")) else {
        println!("NOT RUN: contracts absent");
        return;
    };
    let (cluster, namespace) = stage().await;
    for (index, path) in folder.map(|entry| entry.unwrap().path()).enumerate() {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for document in documents.into_iter().filter(|document| document["kind"] == "MiniCluster") {
            let mut minicluster: MiniCluster = serde_json::from_value(document).unwrap();
            minicluster.metadata.namespace = Some(namespace.name().to_owned());
            minicluster.metadata.name = Some(format!("sample-{index}"));
            apply(&cluster, &planned(&minicluster, None), &path.display().to_string()).await;
        }
    }
}

#[tokio::test]
async fn a_job_follows_its_size_and_keeps_its_pods() {
    let (cluster, namespace) = stage().await;
    let text = "size: 2\nmaxSize: 8\ncontainers: [{image: a, command: b}]";
    let mut minicluster = MiniCluster::new("elastic", serde_saphyr::from_str(text).unwrap());
    minicluster.metadata.namespace = Some(namespace.name().to_owned());
    minicluster.status = Some(MiniClusterStatus { maximum_size: 8, ..MiniClusterStatus::default() });
    let mut job = apply(&cluster, &planned(&minicluster, None), "first").await;
    for size in [8, 1, 4] {
        minicluster.spec.size = size;
        job = apply(&cluster, &planned(&minicluster, Some(job)), "resize").await;
        let spec = job.spec.as_ref().unwrap();
        assert_eq!((spec.parallelism, spec.completions), (Some(size), Some(size)));
    }
    // Pods cannot follow this edit: the write must not be refused for it.
    minicluster.spec.containers[0].image = "another".into();
    minicluster.spec.size = 3;
    let plan = planned(&minicluster, Some(job));
    assert!(!plan.prune);
    let spec = apply(&cluster, &plan, "edit").await.spec.unwrap();
    assert_eq!(spec.parallelism, Some(3));
    assert_eq!(spec.template.spec.unwrap().containers[0].image.as_deref(), Some("a"));
}

#[tokio::test]
async fn the_view_can_be_mounted_from_its_image() {
    let (cluster, namespace) = stage().await;
    let text = "size: 1\ncontainers: [{image: a, command: b}]";
    let mut minicluster = MiniCluster::new("mounted", serde_saphyr::from_str(text).unwrap());
    minicluster.metadata.namespace = Some(namespace.name().to_owned());
    minicluster.metadata.annotations = Some([("bivouac.dev/view".to_owned(), "image".to_owned())].into());
    let job = apply(&cluster, &planned(&minicluster, None), "mounted").await;
    let volumes = job.spec.unwrap().template.spec.unwrap().volumes.unwrap();
    assert!(volumes.iter().any(|volume| volume.image.is_some()), "the server knows image volumes and keeps them");
}
