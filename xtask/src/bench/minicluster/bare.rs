// SPDX-License-Identifier: Apache-2.0
//! What no operator can beat: the same MiniClusters and the same children from a client that only writes, and the pods
//! that Kubernetes makes of the Jobs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bivouac_api::flux::MiniCluster;
use bivouac_core::clock::{Clock, SystemClock};
use bivouac_miniclusters::{Settings, certificate::Certificate, observe::World, plan::plan};
use bivouac_runtime::reconcile::{Child, by_force, dress};
use futures::{StreamExt, TryStreamExt};
use kube::{Api, Client, ResourceExt, api::Patch, core::DynamicObject};
use tokio::sync::oneshot;

use super::load::{self, Shape};

const IN_FLIGHT: usize = 32;
const PATIENCE: Duration = Duration::from_secs(300);

/// Seconds from the first create until all pods exist.
pub async fn measure(shape: Shape) -> Result<f64> {
    let cluster = load::cluster().await?;
    let client = cluster.client();
    load::nodes(&client).await?;
    load::nodes_are_known(&client).await?;
    let started = Instant::now();
    let (tell, all_exist) = oneshot::channel();
    let watch = tokio::spawn(load::pods(client.clone(), shape, started, tell));
    let made = load::create(&client, shape).await?;
    let children: Vec<Child> = made.iter().flat_map(children_of).collect();
    let writes = children.iter().map(|child| apply(&client, child));
    futures::stream::iter(writes).buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
    let seconds = tokio::time::timeout(PATIENCE, all_exist).await;
    // Nobody tells that these are finished.
    watch.abort();
    Ok(seconds.context("the pods do not come")??)
}

fn children_of(minicluster: &MiniCluster) -> Vec<Child> {
    let certificate = Certificate::new([7; 32], &format!("{}-0", minicluster.name_any()));
    let plan = plan(minicluster, &World::empty(certificate), &Settings::default(), SystemClock.now());
    plan.children().map(|child| dress(child.clone(), minicluster)).collect()
}

async fn apply(client: &Client, child: &Child) -> Result<()> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &child.key.namespace, &child.resource);
    api.patch(&child.key.name, &by_force("bivouac-floor"), &Patch::Apply(&child.body)).await?;
    Ok(())
}
