// SPDX-License-Identifier: Apache-2.0
//! The harness against a real API server: finalizers and effects through every crash, and servers that answer badly.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bivouac_testenv::TestCluster;
use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, CustomResourceExt, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::camps::{self, Camp, FINALIZER, Outside, start};

const PATIENCE: Duration = Duration::from_secs(30);
/// Writes of one camp's whole life: its finalizer, two children, a status and an event; then the finalizer goes.
const WRITES: usize = 6;
/// Two tents pitched, two struck.
const ACTIONS: usize = 4;

async fn stage() -> TestCluster {
    // The harness watches all camps of a cluster, so every test has its own.
    let cluster = TestCluster::start(bivouac_testenv::Options::default()).await.unwrap();
    cluster.install_crds(&[Camp::crd()]).await.unwrap();
    cluster
}

#[tokio::test]
async fn a_camp_comes_and_goes_without_a_trace_wherever_the_process_dies() {
    let cluster = stage().await;
    let client = cluster.client();
    let api = Api::<Camp>::default_namespaced(client.clone());

    let (outside, writes) = (Outside::default(), Arc::new(AtomicUsize::new(0)));
    let process = start(through(&client, counted(&writes)), &outside);
    live(&api, "calm", &outside).await;
    leave(&api, "calm", &outside).await;
    process.stop().await;
    assert_eq!((writes.load(Ordering::SeqCst), outside.actions()), (WRITES, ACTIONS), "what this test counts on");

    for takes_place in [false, true] {
        for n in 1..=WRITES {
            let (name, outside) = (format!("write-{n}-{takes_place}"), Outside::default());
            let dead = CancellationToken::new();
            let process = start(through(&client, dying(n, takes_place, dead.clone())), &outside);
            survive(&api, &name, &outside, &dead, process, &client).await;
        }
        for n in 1..=ACTIONS {
            let (name, outside) = (format!("action-{n}-{takes_place}"), Outside::default());
            let dead = CancellationToken::new();
            outside.die_at(n, takes_place, dead.clone());
            let process = start(client.clone(), &outside);
            survive(&api, &name, &outside, &dead, process, &client).await;
        }
    }
}

/// Lives a camp's whole life with a process that dies somewhere in it and another that goes on.
async fn survive(
    api: &Api<Camp>,
    name: &str,
    outside: &Outside,
    dead: &CancellationToken,
    first: camps::Process,
    client: &Client,
) {
    create(api, name).await;
    let settles = ready(api, name);
    let died_alive = tokio::select! { () = dead.cancelled() => true, () = settles => false };
    if !died_alive {
        // It dies during the end of the camp instead, or after its last write.
        api.delete(name, &DeleteParams::default()).await.unwrap();
        let ended = tokio::time::timeout(PATIENCE, dead.cancelled()).await;
        assert!(ended.is_ok(), "{name}: it never died");
    }
    first.kill();
    outside.heal();
    let second = start(client.clone(), outside);
    if died_alive {
        ready(api, name).await;
        assert_eq!(outside.tents(), tents(name), "{name}");
    }
    leave(api, name, outside).await;
    second.stop().await;
}

#[tokio::test]
async fn bad_answers_delay_but_change_nothing() {
    let cluster = stage().await;
    let client = cluster.client();
    let api = Api::<Camp>::default_namespaced(client.clone());
    for code in [409, 410, 429, 500, 503] {
        for takes_place in [false, true] {
            let (name, outside, requests) =
                (format!("bad-{code}-{takes_place}"), Outside::default(), Arc::new(AtomicUsize::new(0)));
            let process = start(through(&client, badly(code, takes_place, requests.clone())), &outside);
            live(&api, &name, &outside).await;
            let alive = requests.load(Ordering::SeqCst);
            leave(&api, &name, &outside).await;
            process.stop().await;
            assert!(alive < 40, "{name}: {alive} writes are a hot loop");
        }
    }
}

#[tokio::test]
async fn a_server_that_always_refuses_is_not_hammered_and_the_others_go_on() {
    let cluster = stage().await;
    let client = cluster.client();
    let api = Api::<Camp>::default_namespaced(client.clone());
    let (outside, refused) = (Outside::default(), Arc::new(AtomicUsize::new(0)));
    let count = refused.clone();
    let refusing = move |client: Client, request: Request<Body>| {
        let count = count.clone();
        async move {
            if is_write(&request) && request.uri().path().contains("cursed-") {
                count.fetch_add(1, Ordering::SeqCst);
                return Ok(answer(403));
            }
            client.send(request).await
        }
    };
    let process = start(through(&client, refusing), &outside);
    create(&api, "cursed").await;
    live(&api, "blessed", &outside).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (tries, camp) = (refused.load(Ordering::SeqCst), api.get("cursed").await.unwrap());
    assert!((2..20).contains(&tries), "{tries} tries in five seconds");
    assert!(camp.finalizers().iter().any(|name| name == FINALIZER));
    process.stop().await;
}

/// Some policy of the cluster may change what we write. Two who do not tire would write for ever.
#[tokio::test]
async fn a_child_that_the_server_keeps_in_another_form_is_written_once() {
    let cluster = stage().await;
    let client = cluster.client();
    rename_tents(&cluster).await;
    let api = Api::<Camp>::default_namespaced(client.clone());
    let (outside, writes) = (Outside::default(), Arc::new(AtomicUsize::new(0)));
    let process = start(through(&client, counted(&writes)), &outside);
    live(&api, "odd", &outside).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // All but the last one, which lets go of the camp.
    assert_eq!(writes.load(Ordering::SeqCst), WRITES - 1);
    let touch = json!({"metadata": {"annotations": {"touched": "yes"}}});
    api.patch("odd", &PatchParams::default(), &Patch::Merge(&touch)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(writes.load(Ordering::SeqCst), WRITES - 1, "another look is no reason to write again");
    let note = Api::<ConfigMap>::default_namespaced(client).get("odd-red").await.unwrap();
    assert_eq!(note.data.unwrap()["tent"], "another");
    process.stop().await;
}

async fn rename_tents(cluster: &TestCluster) {
    let object = |kind: &str, spec: Value| {
        let api = "admissionregistration.k8s.io/v1";
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": "renames.test.bivouac.dev"}, "spec": spec})
    };
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"],
    });
    let rename = "[JSONPatch{op: 'replace', path: '/data/tent', value: 'another'}]";
    let policy = object(
        "MutatingAdmissionPolicy",
        json!({
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"objectSelector": {"matchLabels": {"camp": "yes"}}, "resourceRules": [rule]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": rename}}],
        }),
    );
    let binding = object("MutatingAdmissionPolicyBinding", json!({"policyName": "renames.test.bivouac.dev"}));
    let file = tempfile::NamedTempFile::new().unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [policy, binding]});
    std::fs::write(file.path(), list.to_string()).unwrap();
    let applied = cluster.kubectl(&["apply", "-f", &file.path().display().to_string()]).await.unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    // It takes a moment until the server goes by it.
    let (api, until) = (Api::<ConfigMap>::default_namespaced(cluster.client()), Instant::now() + PATIENCE);
    let probe = json!({"metadata": {"name": "probe", "labels": {"camp": "yes"}}, "data": {"tent": "red"}});
    let probe: ConfigMap = serde_json::from_value(probe).unwrap();
    let try_it = PostParams { dry_run: true, ..PostParams::default() };
    while api.create(&try_it, &probe).await.unwrap().data.unwrap()["tent"] != "another" {
        assert!(Instant::now() < until, "the policy does not work");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

// === the life of a camp ===

async fn live(api: &Api<Camp>, name: &str, outside: &Outside) {
    create(api, name).await;
    ready(api, name).await;
    assert_eq!(outside.tents(), tents(name), "{name}");
}

async fn create(api: &Api<Camp>, name: &str) {
    let camp = Camp::new(name, camps::CampSpec { tents: vec!["red".to_owned(), "blue".to_owned()] });
    let until = Instant::now() + PATIENCE;
    while let Err(error) = api.create(&PostParams::default(), &camp).await {
        // A fresh CRD may answer with 503 or 404 for a moment.
        assert!(Instant::now() < until, "{name}: {error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn ready(api: &Api<Camp>, name: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let status = api.get(name).await.unwrap().status.unwrap_or_default();
        if status.pitched == 2 && status.conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True") {
            return;
        }
        assert!(Instant::now() < until, "{name} is not ready: {status:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Deletes the camp; when it is gone, nothing of it may be left outside.
async fn leave(api: &Api<Camp>, name: &str, outside: &Outside) {
    let notes = Api::<ConfigMap>::default_namespaced(api.clone().into_client());
    let children = notes.list(&ListParams::default().labels("camp=yes")).await.unwrap();
    let ours = children.iter().filter(|note| note.name_any().starts_with(&format!("{name}-"))).count();
    if let Ok(camp) = api.get(name).await {
        assert!(camp.metadata.deletion_timestamp.is_some() || ours == 2, "{name} has {ours} notes");
        let _ = api.delete(name, &DeleteParams::default()).await;
    }
    let until = Instant::now() + PATIENCE;
    while api.get_opt(name).await.unwrap().is_some() {
        assert!(Instant::now() < until, "{name} does not go");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(outside.tents().is_disjoint(&tents(name)), "{name} left {:?}", outside.tents());
}

fn tents(name: &str) -> BTreeSet<String> {
    ["red", "blue"].iter().map(|tent| format!("{name}/{tent}")).collect()
}

// === clients that misbehave ===

type Answer = futures::future::BoxFuture<'static, Result<Response<Body>, kube::Error>>;

fn through<F, A>(client: &Client, service: F) -> Client
where
    F: Fn(Client, Request<Body>) -> A + Clone + Send + 'static,
    A: Future<Output = Result<Response<Body>, kube::Error>> + Send + 'static,
{
    let (client, namespace) = (client.clone(), client.default_namespace().to_owned());
    Client::new(tower::service_fn(move |request| service(client.clone(), request)), namespace)
}

fn is_write(request: &Request<Body>) -> bool {
    request.method() != Method::GET
}

fn counted(writes: &Arc<AtomicUsize>) -> impl Fn(Client, Request<Body>) -> Answer + Clone + Send + 'static {
    let writes = writes.clone();
    move |client, request| {
        writes.fetch_add(usize::from(is_write(&request)), Ordering::SeqCst);
        Box::pin(async move { client.send(request).await })
    }
}

/// The process dies at its n-th write, before it leaves or after it took place.
fn dying(
    n: usize,
    takes_place: bool,
    dead: CancellationToken,
) -> impl Fn(Client, Request<Body>) -> Answer + Clone + Send + 'static {
    let writes = Arc::new(AtomicUsize::new(0));
    move |client, request| {
        let (writes, dead) = (writes.clone(), dead.clone());
        Box::pin(async move {
            let fatal = is_write(&request) && writes.fetch_add(1, Ordering::SeqCst) + 1 == n;
            if fatal && takes_place {
                client.send(request).await?;
            } else if !fatal && !dead.is_cancelled() {
                return client.send(request).await;
            }
            dead.cancel();
            std::future::pending().await
        })
    }
}

/// Every second write is answered with an error, whether it took place or not.
fn badly(
    code: u16,
    takes_place: bool,
    writes: Arc<AtomicUsize>,
) -> impl Fn(Client, Request<Body>) -> Answer + Clone + Send + 'static {
    move |client, request| {
        let writes = writes.clone();
        Box::pin(async move {
            if !is_write(&request) || writes.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
                return client.send(request).await;
            }
            if takes_place {
                client.send(request).await?;
            }
            Ok(answer(code))
        })
    }
}

fn answer(code: u16) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "Test", "message": "made up",
        "details": if code == 429 { json!({"retryAfterSeconds": 1}) } else { json!({}) },
    });
    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response
}
