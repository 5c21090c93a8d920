// SPDX-License-Identifier: Apache-2.0
//! The Workspaces of the measurement.

use std::time::Duration;

use anyhow::{Result, bail};
use bivouac_api::tenant::Workspace;
use futures::{StreamExt, TryStreamExt};
use kube::{
    Api, Client,
    api::PostParams,
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(180);
const CREATORS: usize = 8;

pub fn name(number: usize) -> String {
    format!("team-{number:03}")
}

/// Two members, quota, limits, isolation with two namespaces let in.
pub fn workspace(number: usize) -> Result<Workspace> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "tenant.otterscale.io/v1alpha1", "kind": "Workspace",
        "metadata": {
            "name": name(number),
            // As the mutating policy would set them.
            "labels": {"user.otterscale.io/ada": "true", "user.otterscale.io/bob": "true"},
        },
        "spec": {
            "namespace": name(number),
            "members": [{"subject": "ada", "role": "admin"}, {"subject": "bob", "role": "edit"}],
            "resourceQuota": {"hard": {
                "requests.cpu": "1", "requests.memory": "1Gi", "limits.cpu": "2", "limits.memory": "2Gi",
                "requests.nvidia.com/gpu": "4",
            }},
            "limitRange": {"limits": [{
                "type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "500m"},
                "max": {"cpu": "1"}, "min": {"cpu": "100m"},
            }]},
            "networkIsolation": {"enabled": true, "allowedNamespaces": ["kube-system", "otterscale-system"]},
        },
    }))?)
}

pub async fn create(client: &Client, count: usize) -> Result<Vec<Workspace>> {
    let api = Api::<Workspace>::all(client.clone());
    let create = |number| {
        let api = api.clone();
        async move { anyhow::Ok(api.create(&PostParams::default(), &workspace(number)?).await?) }
    };
    futures::stream::iter((0..count).map(create)).buffered(CREATORS).try_collect().await
}

/// Counts by a watch, so that looking costs the server nothing.
pub async fn all_ready(client: &Client, count: usize) -> Result<()> {
    let mut events =
        std::pin::pin!(watcher(Api::<Workspace>::all(client.clone()), watcher::Config::default()).applied_objects());
    let mut ready = std::collections::BTreeSet::new();
    let watch = async {
        while let Some(workspace) = events.try_next().await? {
            let conditions = workspace.status.map(|status| status.conditions).unwrap_or_default();
            if conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True") {
                ready.insert(workspace.metadata.name);
            }
            if ready.len() == count {
                return anyhow::Ok(());
            }
        }
        bail!("the watch ended")
    };
    match tokio::time::timeout(PATIENCE, watch).await {
        Ok(result) => result,
        Err(_) => bail!("{} of {count} Workspaces are ready after {} s", ready.len(), PATIENCE.as_secs()),
    }
}
