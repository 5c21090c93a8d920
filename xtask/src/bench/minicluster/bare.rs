// SPDX-License-Identifier: Apache-2.0
//! What an operator that costs nothing would show: the same MiniClusters and the same children from a client that only
//! writes, and the pods that Kubernetes makes of the Jobs.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result};
use bivouac_api::flux::MiniCluster;
use bivouac_core::clock::{Clock, SystemClock};
use bivouac_miniclusters::{Settings, certificate::Certificate, observe::World, plan::plan};
use bivouac_runtime::reconcile::{Child, by_force, dress};
use futures::{StreamExt, TryStreamExt};
use kube::{Api, Client, ResourceExt, api::Patch, core::DynamicObject};
use tokio::sync::oneshot;

use super::load::{self, Load, Shape};

/// As many as the operator has: 16 passes, each with its four children.
const IN_FLIGHT: usize = 64;
const PATIENCE: Duration = Duration::from_secs(300);

/// Seconds from the first MiniCluster until all pods exist.
pub async fn measure(shape: Shape, load: Load) -> Result<f64> {
    let cluster = load::cluster().await?;
    let client = cluster.client();
    load::nodes(&client).await?;
    load::nodes_are_known(&client).await?;
    let (tell, all_exist) = oneshot::channel();
    let watch = tokio::spawn(load::pods(client.clone(), shape, tell));
    let first = tokio::spawn(load::first_seen(client.clone()));
    futures::try_join!(load.bring(&cluster, shape), make_children(&client, shape))?;
    let started = first.await??;
    let all_exist = tokio::time::timeout(PATIENCE, all_exist).await;
    // Nobody tells that these are finished.
    watch.abort();
    Ok((all_exist.context("the pods do not come")?? - started).as_secs_f64())
}

/// Of all of them, once the last is there. Whoever begins earlier keeps the server busy and `kubectl` waiting.
async fn make_children(client: &Client, shape: Shape) -> Result<()> {
    let mut seen = BTreeMap::new();
    let mut coming = load::miniclusters(client);
    while seen.len() < shape.clusters {
        let one = coming.try_next().await?.context("the watch ended")?;
        seen.entry(one.name_any()).or_insert(one);
    }
    let writes = seen.values().flat_map(children_of).map(|child| apply(client.clone(), child));
    futures::stream::iter(writes).buffer_unordered(IN_FLIGHT).try_collect().await
}

fn children_of(minicluster: &MiniCluster) -> Vec<Child> {
    let certificate = Certificate::new([7; 32], &format!("{}-0", minicluster.name_any()));
    let plan = plan(minicluster, &World::empty(certificate), &Settings::default(), SystemClock.now());
    plan.children().map(|child| dress(child.clone(), minicluster)).collect()
}

async fn apply(client: Client, child: Child) -> Result<()> {
    let api: Api<DynamicObject> = Api::namespaced_with(client, &child.key.namespace, &child.resource);
    api.patch(&child.key.name, &by_force("bivouac-floor"), &Patch::Apply(&child.body)).await?;
    Ok(())
}
