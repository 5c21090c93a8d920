// SPDX-License-Identifier: Apache-2.0
//! How fast a cluster at rest is simulated: 1,000 nodes with 5,000 running pods for ten days.
//!
//! `cargo run --release -p bivouac-simulator --example node_days`

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use bivouac_apiserver::{ApiServer, Settings, TokioClock};
use bivouac_simulator::Cluster;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const NODES: u32 = 1_000;
const DEPLOYMENTS: u32 = 50;
const DAYS: u32 = 10;
/// What a simulation must reach: virtual node-days for each second of the clock on the wall.
const BAR: f64 = 1_000.0;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        let settings = Settings { clock: Arc::new(TokioClock::default()), seed: Some(7), ..Settings::default() };
        let server = match ApiServer::start(settings).await {
            Ok(server) => server,
            Err(status) => anyhow::bail!("{}", status.message),
        };
        let cluster = Cluster::start(&server, &bivouac_simulator::Settings::default());
        tokio::spawn(cluster.run(CancellationToken::new()));
        let began = Instant::now();
        fill(&server).await?;
        tokio::time::sleep(Duration::from_secs(600)).await;
        let ready = ready_pods(&server);
        println!("{NODES} nodes, {ready} ready pods, made in {:.1?}", began.elapsed());
        ensure!(ready == 100 * DEPLOYMENTS as usize, "not all pods are ready");

        let (began, before) = (Instant::now(), server.store().revision());
        tokio::time::sleep(Duration::from_secs(86_400 * u64::from(DAYS))).await;
        let took = began.elapsed().as_secs_f64();
        let speed = f64::from(NODES * DAYS) / took;
        let writes = server.store().revision() - before;
        println!("{DAYS} days took {took:.2} s and {writes} writes: {speed:.0} virtual node-days per wall second");
        ensure!(speed >= BAR, "the bar is {BAR}");
        Ok(())
    })
}

async fn fill(server: &ApiServer) -> Result<()> {
    for index in 0..NODES {
        let annotations = json!({ "simulator.bivouac.dev/node": "true" });
        let metadata = json!({ "name": format!("node-{index:04}"), "annotations": annotations });
        create(server, "/api/v1/nodes", &json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata })).await?;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for index in 0..DEPLOYMENTS {
        let name = format!("app-{index:02}");
        let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
            "spec": { "replicas": 100, "selector": { "matchLabels": { "app": name } },
                "template": { "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "main", "image": "x" }] } } } });
        create(server, "/apis/apps/v1/namespaces/default/deployments", &deployment).await?;
    }
    Ok(())
}

async fn create(server: &ApiServer, path: &str, object: &Value) -> Result<()> {
    let request = Request::builder().method(Method::POST).uri(path).header("content-type", "application/json");
    let response = server.answer(request.body(Full::new(Bytes::from(object.to_string())))?).await;
    ensure!(response.status().is_success(), "{path}: {}", response.status());
    Ok(())
}

/// What the store says, without a word to the server.
fn ready_pods(server: &ApiServer) -> usize {
    use bivouac_apiserver::store::{Keyspace, Range};
    let pods = server.store().range(&Keyspace::new("", "pods"), &Range::default(), |_| true);
    let is_ready = |body: &[u8]| {
        let pod: Value = serde_json::from_slice(body).unwrap_or_default();
        let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let is = |one: &Value, field: &str, value: &str| one.get(field).and_then(Value::as_str) == Some(value);
        conditions.iter().any(|one| is(one, "type", "Ready") && is(one, "status", "True"))
    };
    pods.map(|page| page.items.iter().filter(|pod| is_ready(pod.body())).count()).unwrap_or_default()
}
