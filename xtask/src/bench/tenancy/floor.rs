// SPDX-License-Identifier: Apache-2.0
//! The floor: the same Workspaces, and then the same objects, verbs and bodies as the operator sends, from a client
//! that only writes: 32 requests in flight on one HTTP/2 connection, namespaces first.

use std::time::Instant;

use anyhow::{Context, Result};
use bivouac_api::tenant::Workspace;
use bivouac_core::clock::{Clock, SystemClock};
use bivouac_runtime::{
    capabilities::Presence,
    client,
    events::Events,
    reconcile::{Child, Note, by_force, dress},
};
use bivouac_tenancy::{
    Settings,
    observe::{Present, World},
    plan::plan,
};
use bivouac_testenv::TestCluster;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, Client, Resource, api::Patch, core::DynamicObject};
use serde_json::{Value, json};

use super::load;

const IN_FLIGHT: usize = 32;
const MANAGER: &str = "bivouac-tenancy";

/// Seconds from the first create until everything is written.
pub async fn measure(cluster: &TestCluster, count: usize) -> Result<f64> {
    let client = client::connect(client::config(Some(cluster.kubeconfig())).await?, "bivouac-floor")?;
    // The connection is made before the clock starts.
    client.apiserver_version().await?;
    let started = Instant::now();
    let workspaces = load::create(&client, count).await?;
    let (mut namespaces, mut others) = (Vec::new(), Vec::new());
    for workspace in &workspaces {
        let mut stages = plan(workspace, &world(false), &Settings::default()).stages.into_iter();
        namespaces
            .extend(stages.next().context("no namespace planned")?.into_iter().map(|child| dress(child, workspace)));
        others.extend(stages.flatten().map(|child| dress(child, workspace)));
    }
    all(namespaces.iter().map(|child| apply(&client, child))).await?;
    all(others.iter().map(|child| apply(&client, child))).await?;
    all(workspaces.iter().map(|workspace| tell(&client, workspace))).await?;
    Ok(started.elapsed().as_secs_f64())
}

async fn all(writes: impl Iterator<Item = impl Future<Output = Result<()>>>) -> Result<()> {
    futures::stream::iter(writes).buffer_unordered(IN_FLIGHT).try_collect().await
}

async fn apply(client: &Client, child: &Child) -> Result<()> {
    let api: Api<DynamicObject> = if child.key.namespace.is_empty() {
        Api::all_with(client.clone(), &child.resource)
    } else {
        Api::namespaced_with(client.clone(), &child.key.namespace, &child.resource)
    };
    api.patch(&child.key.name, &by_force(MANAGER), &Patch::Apply(&child.body)).await?;
    Ok(())
}

/// The status and the event of a settled Workspace.
async fn tell(client: &Client, workspace: &Workspace) -> Result<()> {
    let name = workspace.metadata.name.clone().unwrap_or_default();
    let settled = plan(workspace, &world(true), &Settings::default());
    let mut status = serde_json::to_value(&settled.status)?;
    let now = SystemClock.now();
    let conditions = settled.conditions.iter().map(|verdict| {
        json!({
            "type": verdict.type_, "status": verdict.status.as_str(), "reason": verdict.reason,
            "message": verdict.message, "observedGeneration": 1, "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        })
    });
    if let Some(status) = status.as_object_mut() {
        status.insert("conditions".to_owned(), conditions.collect::<Vec<Value>>().into());
    }
    let body = json!({
        "apiVersion": "tenant.otterscale.io/v1alpha1", "kind": "Workspace",
        "metadata": {"name": name, "uid": workspace.metadata.uid}, "status": status,
    });
    let api = Api::<Workspace>::all(client.clone());
    api.patch_status(&name, &by_force(MANAGER), &Patch::Apply(&body)).await?;
    let about: ObjectReference = workspace.object_ref(&());
    let events = Events::new(client.clone(), MANAGER.to_owned(), "floor".to_owned());
    for Note { warning, reason, action, text } in settled.events {
        events.publish(&about, &Note { warning, reason, action, text }, now).await;
    }
    Ok(())
}

/// A world in which nothing is there yet, or everything.
fn world(settled: bool) -> World {
    let kinds = [
        ("RoleBinding", "workspace-role-binding-admin"),
        ("RoleBinding", "workspace-role-binding-edit"),
        ("ResourceQuota", "workspace-resource-quota"),
        ("LimitRange", "workspace-limit-range"),
        ("NetworkPolicy", "workspace-network-policy"),
    ];
    let present = kinds.map(|(kind, name)| Present { kind, name: name.to_owned() });
    World {
        namespace: None,
        rivals: Vec::new(),
        present: if settled { present.to_vec() } else { Vec::new() },
        mesh: Presence::Absent,
        flux: Presence::Absent,
        gateways: Presence::Absent,
        endpoints: Default::default(),
        refusals: Vec::new(),
    }
}
