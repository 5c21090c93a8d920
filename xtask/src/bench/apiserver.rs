// SPDX-License-Identifier: Apache-2.0
//! The embedded API server beside the real one: the same requests, the same machine, one run.
//!
//! Ours is a service in this process, asked on one thread; the real one is asked over one HTTP/2 connection, as its
//! clients do.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use bivouac_apiserver::{ApiServer, Settings};
use bivouac_testenv::{Options, TestCluster};
use bytes::Bytes;
use futures::{AsyncReadExt, StreamExt};
use http::Request;
use http_body_util::{BodyExt, Full};
use kube::Client;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;

use super::{Bench, Report};

pub const BENCH: Bench = Bench {
    name: "apiserver",
    about: "the embedded API server beside the real one: creates, applies, lists, watches, memory",
    run,
};

const OBJECTS: usize = 100_000;
/// The best of these counts: what else runs on a machine only makes slower.
const BATCHES: usize = 4;
const APPLIES: usize = 10_000;
/// Requests under way at once: more makes the real server no faster, and ours on one thread only slower.
const IN_FLIGHT_REAL: usize = 64;
const IN_FLIGHT_OURS: usize = 1;
const NAMESPACE: &str = "bench";

#[derive(Debug)]
struct Figures {
    creates_per_s: f64,
    applies_per_s: f64,
    list_100k_ms: f64,
    watch_events_per_s: f64,
    bytes_per_object: f64,
}

fn run(args: &[String]) -> Result<Report> {
    let one_thread = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match args {
        [] => {}
        [only] if only == "--million" => return one_thread.block_on(million()),
        _ => bail!("the only option is --million"),
    }
    let (ours, through_client) = one_thread.block_on(ours())?;
    eprintln!("ours: {ours:?}");
    let real = tokio::runtime::Runtime::new()?.block_on(real())?;
    eprintln!("real: {real:?}");
    let mut report = Report::default();
    let rows = [
        ("ours.creates_per_s", "real.creates_per_s", "pods/s", ours.creates_per_s, real.creates_per_s),
        ("ours.applies_per_s", "real.applies_per_s", "patches/s", ours.applies_per_s, real.applies_per_s),
        ("ours.list_100k_ms", "real.list_100k_ms", "ms", ours.list_100k_ms, real.list_100k_ms),
        (
            "ours.watch_events_per_s",
            "real.watch_events_per_s",
            "events/s",
            ours.watch_events_per_s,
            real.watch_events_per_s,
        ),
        ("ours.bytes_per_object", "real.bytes_per_object", "B", ours.bytes_per_object, real.bytes_per_object),
    ];
    for (our_key, real_key, unit, ours, real) in rows {
        report.add(our_key, ours, unit, format!("{:.2} times the real server's", ours / real));
        report.add(real_key, real, unit, "");
    }
    report.add("ours.client_creates_per_s", through_client, "pods/s", "through a client of kube in the same thread");
    Ok(report)
}

/// The figures, and how many creates a second pass through a client of kube, which works for each of them too.
async fn ours() -> Result<(Figures, f64)> {
    const THROUGH_CLIENT: usize = 20_000;
    let server = ApiServer::start(Settings::default()).await?;
    let client = Client::new(server.clone(), "default");
    let ask = async |request: Request<Vec<u8>>| {
        let answer = server.answer(request.map(|body| Full::new(Bytes::from(body)))).await;
        let code = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        ensure!(code.is_success(), "{}", String::from_utf8_lossy(&body));
        Ok(())
    };
    let figures = measure(&client, ask, IN_FLIGHT_OURS, || memory(&[std::process::id()])).await?;
    let ask = through(&client);
    let path = prepare(&ask, "client").await?;
    let start = Instant::now();
    each(THROUGH_CLIENT, IN_FLIGHT_OURS, |n| create(&ask, &path, n)).await?;
    Ok((figures, THROUGH_CLIENT as f64 / start.elapsed().as_secs_f64()))
}

fn through(client: &Client) -> impl AsyncFn(Request<Vec<u8>>) -> Result<()> {
    async |request: Request<Vec<u8>>| {
        let path = request.uri().to_string();
        client.request_text(request).await.context(path)?;
        Ok(())
    }
}

async fn real() -> Result<Figures> {
    let without = ["kube-controller-manager", "kube-scheduler", "kwok"].map(str::to_owned).into();
    let cluster = TestCluster::start(Options { without, ..Options::default() }).await?;
    let pids: Vec<u32> = cluster.pids().map(|(_, pid)| pid).collect();
    let config = bivouac_runtime::client::config(Some(cluster.kubeconfig())).await?;
    let client = bivouac_runtime::client::connect(config, "bench")?;
    measure(&client, through(&client), IN_FLIGHT_REAL, || memory(&pids)).await
}

/// A namespace in which pods can be made: their path.
async fn prepare(ask: &impl AsyncFn(Request<Vec<u8>>) -> Result<()>, namespace: &str) -> Result<String> {
    ask(post("/api/v1/namespaces", json!({"metadata": {"name": namespace}}).to_string())?).await?;
    let account = json!({"metadata": {"name": "default"}});
    ask(post(&format!("/api/v1/namespaces/{namespace}/serviceaccounts"), account.to_string())?).await?;
    Ok(format!("/api/v1/namespaces/{namespace}/pods"))
}

async fn measure(
    client: &Client,
    ask: impl AsyncFn(Request<Vec<u8>>) -> Result<()>,
    in_flight: usize,
    memory: impl Fn() -> Result<f64>,
) -> Result<Figures> {
    let path = prepare(&ask, NAMESPACE).await?;
    let before = memory()?;
    let mut creates_per_s = 0.0_f64;
    for batch in 0..BATCHES {
        let start = Instant::now();
        each(OBJECTS / BATCHES, in_flight, |n| create(&ask, &path, batch * (OBJECTS / BATCHES) + n)).await?;
        creates_per_s = creates_per_s.max((OBJECTS / BATCHES) as f64 / start.elapsed().as_secs_f64());
    }
    let bytes_per_object = (memory()? - before) / OBJECTS as f64;

    let start = Instant::now();
    each(APPLIES, in_flight, |n| apply(&ask, n)).await?;
    let applies_per_s = APPLIES as f64 / start.elapsed().as_secs_f64();

    let mut list_100k_ms = f64::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        let bytes = read(client, &path, |_| false).await?;
        ensure!(bytes > OBJECTS, "the list is {bytes} bytes long");
        list_100k_ms = list_100k_ms.min(start.elapsed().as_secs_f64() * 1_000.0);
    }
    let start = Instant::now();
    let mut events = 0;
    let watch =
        format!("{path}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    read(client, &watch, |bytes| {
        events += bytes.iter().filter(|byte| **byte == b'\n').count();
        events > OBJECTS
    })
    .await?;
    let watch_events_per_s = events as f64 / start.elapsed().as_secs_f64();
    Ok(Figures { creates_per_s, applies_per_s, list_100k_ms, watch_events_per_s, bytes_per_object })
}

/// A million small objects in our server. The real one would need an hour, so it is not asked.
async fn million() -> Result<Report> {
    const COUNT: usize = 1_000_000;
    const PAGE: usize = 10_000;
    /// As many events as are watched. The server remembers twice as many of each kind.
    const WATCHED: usize = 50_000;
    let client = Client::new(ApiServer::start(Settings::default()).await?, "default");
    let ask = &through(&client);
    ask(post("/api/v1/namespaces", json!({"metadata": {"name": NAMESPACE}}).to_string())?).await?;
    let path = &format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let before = memory(&[std::process::id()])?;
    let start = Instant::now();
    let client = &client;
    let create = |n: usize| async move {
        let map = json!({"metadata": {"name": format!("map-{n:07}")}, "data": {"n": n.to_string()}});
        ask(post(path, map.to_string())?).await
    };
    each(COUNT, IN_FLIGHT_OURS, create).await?;
    let seconds = start.elapsed().as_secs_f64();
    let mut report = Report::default();
    report.add("million.seconds", seconds, "s", "to create a million small ConfigMaps");
    report.add("million.creates_per_s", COUNT as f64 / seconds, "maps/s", "");
    let bytes = (memory(&[std::process::id()])? - before) / COUNT as f64;
    report.add("million.bytes_per_object", bytes, "B", "with the history of the last writes");

    let start = Instant::now();
    let (mut found, mut next, mut revision) = (0, String::new(), 0);
    loop {
        let page = format!("{path}?limit={PAGE}&continue={next}");
        let page = client.request_text(Request::get(page).body(Vec::new())?).await?;
        let Page { metadata, items } = serde_json::from_str(&page)?;
        found += items.len();
        revision = metadata.resource_version.parse::<usize>().unwrap_or(revision);
        next = metadata.next;
        if next.is_empty() {
            break;
        }
    }
    ensure!(found == COUNT, "the pages have {found} objects");
    report.add("million.list_s", start.elapsed().as_secs_f64(), "s", "to list and parse all, 10,000 to a page");

    let start = Instant::now();
    let watch = format!("{path}?watch=true&resourceVersion={}", revision - WATCHED);
    let mut events = 0;
    read(client, &watch, |bytes| {
        events += bytes.iter().filter(|byte| **byte == b'\n').count();
        events >= WATCHED
    })
    .await?;
    let rate = events as f64 / start.elapsed().as_secs_f64();
    report.add("million.watch_events_per_s", rate, "events/s", "from a revision that is still remembered");
    Ok(report)
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    items: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
    resource_version: String,
}

/// Does something for each number, so many at once.
async fn each<F: Future<Output = Result<()>>>(count: usize, at_once: usize, act: impl Fn(usize) -> F) -> Result<()> {
    let mut running = futures::stream::iter(0..count).map(act).buffer_unordered(at_once);
    while let Some(done) = running.next().await {
        done?;
    }
    Ok(())
}

/// Written as text: making JSON is a caller's work, and not what is measured.
fn pod(n: usize) -> String {
    let metadata = format!(r#"{{"name":"pod-{n:06}","labels":{{"app":"bench","shard":"{}"}}}}"#, n % 100);
    let resources = r#"{"requests":{"cpu":"100m","memory":"64Mi"}}"#;
    let container = format!(r#"{{"name":"main","image":"registry.example/main:1","resources":{resources}}}"#);
    format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{metadata},"spec":{{"containers":[{container}]}}}}"#)
}

async fn create(ask: &impl AsyncFn(Request<Vec<u8>>) -> Result<()>, path: &str, n: usize) -> Result<()> {
    ask(post(path, pod(n))?).await
}

fn post(path: &str, body: String) -> Result<Request<Vec<u8>>> {
    let request = Request::post(path).header("content-type", "application/json");
    Ok(request.body(body.into_bytes())?)
}

async fn apply(ask: &impl AsyncFn(Request<Vec<u8>>) -> Result<()>, n: usize) -> Result<()> {
    let name = format!("map-{}", n % 1_000);
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}?fieldManager=bench&force=true");
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"round": (n / 1_000).to_string()}}, "data": {"n": n.to_string(), "same": "value"}});
    let request = Request::patch(path).header("content-type", "application/apply-patch+yaml");
    ask(request.body(body.to_string().into_bytes())?).await
}

/// Reads an answer to its end, or until somebody has enough. The answer is how many bytes came.
async fn read(client: &Client, path: &str, mut enough: impl FnMut(&[u8]) -> bool) -> Result<usize> {
    let mut stream = Box::pin(client.request_stream(Request::get(path).body(Vec::new())?).await?);
    let (mut buffer, mut total) = (vec![0; 1 << 20], 0);
    loop {
        let count = stream.read(&mut buffer).await?;
        total += count;
        if count == 0 || enough(buffer.get(..count).unwrap_or_default()) {
            return Ok(total);
        }
    }
}

/// The memory of some processes, in bytes.
fn memory(pids: &[u32]) -> Result<f64> {
    let mut total = 0.0;
    for pid in pids {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        total += kib * 1024.0;
    }
    Ok(total)
}
