// SPDX-License-Identifier: Apache-2.0
//! What we make of new objects is what the real server makes of them.

use bivouac_apiserver::builtin::{Resource, builtins};
use bivouac_testenv::{Options, TestCluster};
use kube::Client;
use serde_json::Value;

/// They fill in what is no default; the embedded server does that in a place of its own.
const NO_ADMISSION: &str = "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds,Priority,LimitRanger,\
                            ResourceQuota,PodSecurity,DefaultStorageClass,StorageObjectInUseProtection";

fn manifests() -> Vec<Value> {
    serde_saphyr::from_multiple(include_str!("defaults.yaml")).unwrap()
}

fn resource(object: &Value) -> &'static Resource {
    let version = object["apiVersion"].as_str().unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let is = |one: &&Resource| *one.group == *group && *one.version == *version && object["kind"] == *one.kind;
    builtins().resources.iter().find(is).unwrap()
}

async fn create(client: &Client, object: &Value) -> Value {
    let resource = resource(object);
    let root = if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
    let namespace = if resource.namespaced { "/namespaces/default" } else { "" };
    let path = format!("{root}/{}{namespace}/{}?dryRun=All", resource.version, resource.plural);
    let body = serde_json::to_vec(object).unwrap();
    client.request(http::Request::post(path).body(body).unwrap()).await.unwrap()
}

/// How an answer differs from ours, one line per place.
fn differences(path: &str, ours: &Value, real: &Value, found: &mut Vec<String>) {
    if let (Value::Object(ours), Value::Object(real)) = (ours, real) {
        let names: std::collections::BTreeSet<_> = ours.keys().chain(real.keys()).collect();
        for name in names {
            let (ours, real) = (ours.get(name), real.get(name));
            if ours.is_none() || real.is_none() {
                found.push(format!("{path}.{name}: ours {ours:?}, real {real:?}"));
            }
            if let (Some(ours), Some(real)) = (ours, real) {
                differences(&format!("{path}.{name}"), ours, real, found);
            }
        }
    } else if let (Value::Array(ours), Value::Array(real)) = (ours, real)
        && ours.len() == real.len()
    {
        for (index, (ours, real)) in ours.iter().zip(real).enumerate() {
            differences(&format!("{path}[{index}]"), ours, real, found);
        }
    } else if ours != real {
        found.push(format!("{path}: ours {ours}, real {real}"));
    }
}

#[tokio::test]
async fn new_objects_are_completed_as_the_real_server_does() {
    let without = ["kube-controller-manager", "kube-scheduler", "kwok"].map(str::to_owned).into();
    let options = Options { without, apiserver_args: vec![NO_ADMISSION.to_owned()], ..Options::default() };
    let cluster = TestCluster::start(options).await.unwrap();
    let manifests = manifests();
    assert!(manifests.len() >= 25);
    let mut found = Vec::new();
    for object in manifests {
        let real = create(&cluster.client(), &object).await;
        let mut ours = object.clone();
        // Labels are given; the rest of the metadata is the server's to make.
        let labels = object["metadata"].get("labels").cloned();
        ours["metadata"] = real["metadata"].clone();
        if let Some(metadata) = ours["metadata"].as_object_mut() {
            metadata.remove("labels");
            labels.into_iter().for_each(|labels| drop(metadata.insert("labels".to_owned(), labels)));
        }
        let of = resource(&object);
        builtins().complete(&of.group, &of.version, &of.kind, &mut ours);
        differences(&format!("{} {}", of.kind, object["metadata"]["name"]), &ours, &real, &mut found);
    }
    // The server's clock.
    found.retain(|line| !line.contains("lastPhaseTransitionTime"));
    assert!(found.is_empty(), "{}", found.join("\n"));
}
