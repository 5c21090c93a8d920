// SPDX-License-Identifier: Apache-2.0
//! The operator dies at its n-th write, for every n, before the write left or after it arrived. A second operator
//! then leads to the same end as an undisturbed one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bivouac_api::tenant::Workspace;
use bivouac_core::clock::Clock;
use bivouac_runtime::process::{self, Options};
use http::{Method, Request};
use k8s_openapi::api::{
    core::v1::{LimitRange, Namespace, ResourceQuota},
    networking::v1::NetworkPolicy,
    rbac::v1::RoleBinding,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
    client::Body,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::stage::workspace_crds;
use crate::world::World;

/// What brings one Workspace of the test's shape to its end: six children, one status, one event.
const WRITES: usize = 8;
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
enum Death {
    BeforeTheWriteLeaves,
    AfterTheWriteArrived,
}

pub async fn dying_at_any_write_leads_to_the_same_end() {
    let world = World::own().await;
    world.install_crds(&workspace_crds()).await;
    let client = world.client();

    create(&client, "undisturbed").await;
    let counter = Arc::new(AtomicUsize::new(0));
    let operator = start(counting(client.clone(), counter.clone()), world.clock());
    ready(&client, "undisturbed").await;
    stop(operator).await;
    assert_eq!(counter.load(Ordering::SeqCst), WRITES, "the shape of this test and its writes belong together");
    let expected = state(&client, "undisturbed").await;

    for death in [Death::BeforeTheWriteLeaves, Death::AfterTheWriteArrived] {
        for n in 1..=WRITES {
            let name = match death {
                Death::BeforeTheWriteLeaves => format!("before-{n}"),
                Death::AfterTheWriteArrived => format!("after-{n}"),
            };
            create(&client, &name).await;
            let dead = CancellationToken::new();
            let first = start(dying(client.clone(), n, death, dead.clone()), world.clock());
            let died = tokio::time::timeout(PATIENCE, dead.cancelled()).await;
            assert!(died.is_ok(), "{name}: it never made its {n}th write");
            first.0.abort();
            let second = start(client.clone(), world.clock());
            ready(&client, &name).await;
            stop(second).await;
            assert_eq!(state(&client, &name).await, expected, "{name}");
        }
    }
}

// === the operator ===

type Operator = (tokio::task::JoinHandle<()>, CancellationToken);

fn start(client: Client, clock: Arc<dyn Clock>) -> Operator {
    let stop = CancellationToken::new();
    let options = Options {
        controllers: vec![bivouac_tenancy::registration(bivouac_tenancy::Settings::default())],
        admin: None,
        lease: None,
        identity: "test".to_owned(),
    };
    let token = stop.clone();
    let task = async move { process::operate(client, clock, options, token).await.unwrap_or_default() };
    (tokio::spawn(task), stop)
}

async fn stop((task, token): Operator) {
    token.cancel();
    tokio::time::timeout(PATIENCE, task).await.expect("it stops in time").expect("it stops without a panic");
}

fn is_write(request: &Request<Body>) -> bool {
    request.method() != Method::GET
}

fn counting(client: Client, counter: Arc<AtomicUsize>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = move |request: Request<Body>| {
        let (client, counter) = (client.clone(), counter.clone());
        async move {
            counter.fetch_add(usize::from(is_write(&request)), Ordering::SeqCst);
            client.send(request).await
        }
    };
    Client::new(tower::service_fn(service), namespace)
}

/// A client whose process dies at the n-th write: nothing it does afterwards reaches anybody.
fn dying(client: Client, n: usize, death: Death, dead: CancellationToken) -> Client {
    let namespace = client.default_namespace().to_owned();
    let writes = Arc::new(AtomicUsize::new(0));
    let service = move |request: Request<Body>| {
        let (client, writes, dead) = (client.clone(), writes.clone(), dead.clone());
        async move {
            let fatal = is_write(&request) && writes.fetch_add(1, Ordering::SeqCst) + 1 == n;
            if fatal {
                if matches!(death, Death::AfterTheWriteArrived) {
                    client.send(request).await?;
                }
                dead.cancel();
                // A dead process hears nothing any more.
                return std::future::pending().await;
            }
            if dead.is_cancelled() {
                return std::future::pending().await;
            }
            client.send(request).await
        }
    };
    Client::new(tower::service_fn(service), namespace)
}

// === the world ===

async fn create(client: &Client, name: &str) {
    let workspace: Workspace = serde_json::from_value(json!({
        "apiVersion": "tenant.otterscale.io/v1alpha1", "kind": "Workspace", "metadata": {
            "name": name,
            // As the mutating policy would set them.
            "labels": {"user.otterscale.io/ada": "true", "user.otterscale.io/bob": "true"},
        },
        "spec": {
            "namespace": name,
            "members": [{"subject": "ada", "role": "admin"}, {"subject": "bob", "role": "edit"}],
            "resourceQuota": {"hard": {"requests.cpu": "1", "limits.memory": "2Gi"}},
            "limitRange": {"limits": [{"type": "Container", "default": {"cpu": "500m"}}]},
            "networkIsolation": {"enabled": true, "allowedNamespaces": ["kube-system"]},
        },
    }))
    .unwrap();
    let api = Api::<Workspace>::all(client.clone());
    let until = tokio::time::Instant::now() + PATIENCE;
    while let Err(error) = api.create(&PostParams::default(), &workspace).await {
        // A fresh CRD may answer with 503 or 404 for a moment.
        let fresh = matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 429 | 503));
        assert!(fresh && tokio::time::Instant::now() < until, "{name}: {error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn ready(client: &Client, name: &str) {
    let api = Api::<Workspace>::all(client.clone());
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        let workspace = api.get(name).await.unwrap();
        let conditions = workspace.status.map(|status| status.conditions).unwrap_or_default();
        if conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True") {
            return;
        }
        assert!(tokio::time::Instant::now() < until, "{name} did not become ready: {conditions:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Everything that must be equal, without what differs by nature: names, UIDs, times, versions.
async fn state(client: &Client, name: &str) -> Value {
    let namespace = Api::<Namespace>::all(client.clone()).get(name).await.unwrap();
    let workspace = Api::<Workspace>::all(client.clone()).get(name).await.unwrap();
    let all = json!({
        "namespace": neutral(&namespace),
        "workspace": {"spec": workspace.spec, "labels": workspace.metadata.labels, "status": workspace.status},
        "children": [
            children::<RoleBinding>(client, name).await, children::<ResourceQuota>(client, name).await,
            children::<LimitRange>(client, name).await, children::<NetworkPolicy>(client, name).await,
        ],
    });
    let text = all.to_string().replace(name, "NAME").replace(&workspace.uid().unwrap(), "UID");
    let mut value: Value = serde_json::from_str(&text).unwrap();
    drop_keys(&mut value, &["lastTransitionTime", "bivouac.dev/applied"]);
    value
}

async fn children<K>(client: &Client, namespace: &str) -> Vec<Value>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let list = Api::<K>::namespaced(client.clone(), namespace).list(&ListParams::default()).await.unwrap();
    list.iter().map(neutral).collect()
}

/// An object with the parts of its metadata that say something, and who wrote it. Its status is the server's.
fn neutral<K: kube::Resource + Serialize>(object: &K) -> Value {
    let ours = object.managed_fields().iter().filter(|entry| entry.subresource.is_none());
    let writers: Vec<_> = ours.map(|entry| (&entry.manager, &entry.operation)).collect();
    let mut value = serde_json::to_value(object).unwrap();
    value["metadata"] = json!({
        "name": object.name_any(), "labels": object.labels(), "annotations": object.annotations(),
        "owners": object.owner_references(), "writers": writers,
    });
    value["status"] = Value::Null;
    value
}

fn drop_keys(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !keys.contains(&key.as_str()));
            fields.values_mut().for_each(|value| drop_keys(value, keys));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| drop_keys(value, keys)),
        _ => {}
    }
}
