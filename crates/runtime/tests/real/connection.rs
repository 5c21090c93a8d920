// SPDX-License-Identifier: Apache-2.0
//! Everything shares one connection, and nothing on it waits for anything else.

use std::{collections::BTreeMap, time::Duration};

use bivouac_runtime::client;
use bivouac_testenv::TestCluster;
use futures::{StreamExt, TryStreamExt};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::PostParams,
    client::Body,
    core::ObjectMeta,
    runtime::{WatchStreamExt, watcher},
};

const PATIENCE: Duration = Duration::from_secs(20);
/// Together more than the 64 KiB that HTTP/2 lets a server send to a client that reads nothing, unless it allows more.
const UNREAD: usize = 8;

fn config_map(name: &str, size: usize) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let data = BTreeMap::from([("text".to_owned(), "x".repeat(size))]);
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

/// The server ends a watch whose events it cannot get rid of for a moment, and holds up all others meanwhile.
#[tokio::test]
async fn a_watch_goes_on_while_answers_lie_unread() {
    let cluster = TestCluster::shared().await.unwrap();
    let namespace = cluster.namespace("connection").await.unwrap();
    let config = client::config(Some(cluster.kubeconfig())).await.unwrap();
    let (client, others) = (client::connect(config, "bivouac-test").unwrap(), cluster.client());
    let writer = Api::<ConfigMap>::namespaced(others, namespace.name());
    writer.create(&PostParams::default(), &config_map("large", 500_000)).await.unwrap();

    let api = Api::<ConfigMap>::namespaced(client.clone(), namespace.name());
    let config = watcher::Config::default().fields("metadata.name!=large");
    let mut seen = watcher(api, config).default_backoff().applied_objects().boxed();
    let mut next = async |name: &str| {
        let event = async {
            while let Some(object) = seen.try_next().await.unwrap() {
                if object.metadata.name.as_deref() == Some(name) {
                    break;
                }
            }
        };
        tokio::time::timeout(PATIENCE, event).await.unwrap_or_else(|_| panic!("the watch does not tell of {name}"));
    };
    writer.create(&PostParams::default(), &config_map("before", 10)).await.unwrap();
    next("before").await;

    let mut unread = Vec::new();
    for _ in 0..UNREAD {
        let path = format!("/api/v1/namespaces/{}/configmaps/large", namespace.name());
        let request = Request::get(path).body(Body::empty()).unwrap();
        // The head is here, and the body as far as the server may send it.
        unread.push(client.send(request).await.unwrap());
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    writer.create(&PostParams::default(), &config_map("after", 10)).await.unwrap();
    next("after").await;
    drop(unread);
}
