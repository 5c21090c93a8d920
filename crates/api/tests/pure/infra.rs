// SPDX-License-Identifier: Apache-2.0
//! Group `infra.exalsius.ai`.

use bivouac_api::infra::Colony;
use serde_json::json;

use crate::kinds::{face, samples, schema};

#[test]
fn faces() {
    assert_eq!(
        face("colonies.infra.exalsius.ai"),
        ["Namespaced", "", "Phase, Ready Clusters, Total Clusters, GPUs, Age"]
    );
}

#[test]
fn samples_survive() {
    assert!(samples::<Colony>("exalsius").is_none_or(|n| n == 2));
}

#[test]
fn the_server_gives_a_colony_without_spec_an_empty_one() {
    assert_eq!(schema("colonies.infra.exalsius.ai", "spec")["default"], json!({}));
}

#[test]
fn a_cluster_deployment_of_any_shape_passes_through() {
    let spec = schema("colonies.infra.exalsius.ai", "spec.colonyClusters.[].clusterDeploymentSpec");
    assert_eq!(spec["x-kubernetes-preserve-unknown-fields"], true);

    let any = json!({"template": "t", "config": {"deep": [1, {"er": null}]}, "later": 1.5});
    let colony: Colony = serde_json::from_value(json!({
        "apiVersion": "infra.exalsius.ai/v1", "kind": "Colony", "metadata": {"name": "c"},
        "spec": {"colonyClusters": [{"clusterName": "a", "clusterDeploymentSpec": any}]},
    }))
    .unwrap();
    let written = serde_json::to_value(&colony).unwrap();
    assert_eq!(written["spec"]["colonyClusters"][0]["clusterDeploymentSpec"], any);
}
