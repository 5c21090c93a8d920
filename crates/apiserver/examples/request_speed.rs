// SPDX-License-Identifier: Apache-2.0
//! How many pods one core creates through the whole request path, for a profiler to look at.
#![allow(clippy::print_stdout, reason = "an example")]

use std::time::Instant;

use bivouac_apiserver::{ApiServer, Settings};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50_000);
    let server = ApiServer::start(Settings::default()).await?;
    let account = json!({ "metadata": { "name": "default" } });
    send(&server, "/api/v1/namespaces/default/serviceaccounts", &account).await?;
    let start = Instant::now();
    for n in 0..count {
        send(&server, "/api/v1/namespaces/default/pods", &pod(n)).await?;
    }
    println!("{:.0} creates/s", count as f64 / start.elapsed().as_secs_f64());
    Ok(())
}

fn pod(n: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("pod-{n:06}"), "labels": {"app": "bench", "shard": (n % 100).to_string()}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/main:1",
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]},
    })
}

async fn send(server: &ApiServer, path: &str, body: &Value) -> Result<(), Box<dyn std::error::Error>> {
    let request = Request::post(path).header("content-type", "application/json");
    let response = server.answer(request.body(Full::new(Bytes::from(body.to_string())))?).await;
    let code = response.status();
    let bytes = response.into_body().collect().await?.to_bytes();
    if code.is_success() { Ok(()) } else { Err(String::from_utf8_lossy(&bytes).into()) }
}
