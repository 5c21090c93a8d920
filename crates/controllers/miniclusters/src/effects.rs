// SPDX-License-Identifier: Apache-2.0
//! Writes that make no child. Each names the very object that the plan saw.

use bivouac_api::flux::MiniCluster;
use bivouac_runtime::{
    Error,
    mirror::{Key, Mirror},
};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, EvictParams, Patch, PatchParams, Preconditions},
};
use serde_json::json;

use crate::{build::JOB_INDEX, plan::Effect, sight::RankPod};

pub async fn perform(
    client: &Client,
    ranks: &Mirror<RankPod>,
    minicluster: &MiniCluster,
    effect: Effect,
) -> Result<(), Error> {
    let (namespace, name) = (minicluster.namespace().unwrap_or_default(), minicluster.name_any());
    let params = PatchParams { field_manager: Some("bivouac-miniclusters".to_owned()), ..PatchParams::default() };
    let done = match effect {
        Effect::SetSize { size } => {
            // A newer wish must not be overwritten.
            let version = minicluster.resource_version();
            let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"size": size}});
            let api = Api::<MiniCluster>::namespaced(client.clone(), &namespace);
            api.patch(&name, &params, &Patch::Merge(&patch)).await.map(drop)
        }
        Effect::Label { pod, uid, index } => {
            let patch = json!({"metadata": {"uid": uid, "labels": {JOB_INDEX: index}}});
            let api = Api::<RankPod>::namespaced(client.clone(), &namespace);
            let labelled = api.patch(&pod, &params, &Patch::Merge(&patch)).await.map(|labelled| ranks.wrote(labelled));
            unless_gone(labelled, ranks, &namespace, &pod)
        }
        Effect::Evict { pod, uid, .. } => {
            let preconditions = Some(Preconditions { uid: Some(uid), resource_version: None });
            let delete_options = Some(DeleteParams { preconditions, ..DeleteParams::default() });
            let params = EvictParams { delete_options, ..EvictParams::default() };
            // Only pods have this, so it is asked of a pod, though nobody reads one.
            let evicted = Api::<Pod>::namespaced(client.clone(), &namespace).evict(&pod, &params).await.map(drop);
            unless_gone(evicted, ranks, &namespace, &pod)
        }
        Effect::Delete => {
            let preconditions = Some(Preconditions { uid: minicluster.uid(), resource_version: None });
            let params = DeleteParams { preconditions, ..DeleteParams::default() };
            let api = Api::<MiniCluster>::namespaced(client.clone(), &namespace);
            api.delete(&name, &params).await.map(drop)
        }
    };
    done.map_err(|error| Error::api(format!("keep MiniCluster {namespace}/{name}"), error))
}

/// A pod that is gone needs nothing. The next look must know that, or it would ask again and again.
fn unless_gone(
    done: Result<(), kube::Error>,
    ranks: &Mirror<RankPod>,
    namespace: &str,
    pod: &str,
) -> Result<(), kube::Error> {
    match done {
        Err(kube::Error::Api(status)) if status.is_not_found() => {
            ranks.erased(&Key::new(namespace, pod));
            Ok(())
        }
        done => done,
    }
}
