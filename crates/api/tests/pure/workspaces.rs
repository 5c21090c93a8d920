// SPDX-License-Identifier: Apache-2.0
//! Group `workspaces.exalsius.ai`.

use bivouac_api::workspaces::{WorkspaceClass, WorkspaceClassSpec, WorkspaceDeployment, WorkspaceDeploymentSpec};
use serde_json::json;

use crate::kinds::{face, samples, schema};

#[test]
fn faces() {
    assert_eq!(
        face("workspaceclasses.workspaces.exalsius.ai"),
        ["Cluster", "wsc", "Display Name, Replicas, GPUs, ServiceTemplate, Valid, [ValidationError], Age"]
    );
    assert_eq!(
        face("workspacedeployments.workspaces.exalsius.ai"),
        ["Namespaced", "wsd", "Class, Cluster, Phase, Ready, [GPUs], URL, Age"]
    );
}

#[test]
fn samples_survive() {
    assert!(samples::<WorkspaceClass>("exalsius").is_none_or(|n| n == 11));
    assert!(samples::<WorkspaceDeployment>("exalsius").is_none_or(|n| n == 12));
}

#[test]
fn lists_merge_by_key() {
    let name = "workspaceclasses.workspaces.exalsius.ai";
    let keys = |path| schema(name, path)["x-kubernetes-list-map-keys"].clone();
    assert_eq!(keys("spec.accessEndpoints"), json!(["name"]));
    assert_eq!(keys("spec.userFacingConfig"), json!(["helmValuePath"]));
    assert_eq!(schema(name, "spec.resourceInjection.gpuCount")["x-kubernetes-list-type"], "set");
}

#[test]
fn a_class_cannot_choose_a_model() {
    let mut class = WorkspaceClass::new("c", WorkspaceClassSpec { display_name: "C".into(), ..Default::default() });
    class.validate_cel().unwrap();

    class.spec.default_resources.per_replica.gpu_type = Some("NVIDIA-L40".into());
    let refused = class.validate_cel().unwrap_err().to_string();
    assert!(refused.contains("set gpuType on the WorkspaceDeployment"), "{refused}");

    class.spec.default_resources.per_replica.gpu_type = None;
    class.spec.default_resources.per_replica.gpu_node_selector = Some([("a".into(), "b".into())].into());
    let refused = class.validate_cel().unwrap_err().to_string();
    assert!(refused.contains("set gpuNodeSelector on the WorkspaceDeployment"), "{refused}");
}

#[test]
fn a_deployment_needs_a_name_that_fits_its_namespace() {
    let refusal = |name: &str| {
        let deployment = WorkspaceDeployment::new(name, WorkspaceDeploymentSpec::default());
        deployment.validate_cel().err().map(|e| e.to_string())
    };
    assert_eq!(refusal(&"a".repeat(60)), None);
    // These words are part of the contract: clients look for them.
    assert!(refusal(&"a".repeat(61)).unwrap().contains("60 characters"));
    assert!(refusal("with.dots").unwrap().contains("DNS-1123"));
}

#[test]
fn replicas_are_one_unless_said_otherwise() {
    let path = "spec.resources.replicas";
    assert_eq!(schema("workspacedeployments.workspaces.exalsius.ai", path)["default"], 1);
    let spec: WorkspaceDeploymentSpec = serde_json::from_value(json!({
        "workspaceClassRef": "c", "clusterDeploymentRef": {"name": "n", "namespace": "ns"},
        "resources": {"perReplica": {"cpu": 4, "memory": "8Gi"}},
    }))
    .unwrap();
    let resources = spec.resources.unwrap();
    assert_eq!(resources.replicas, 1);
    assert_eq!(resources.per_replica.cpu.unwrap().0, "4", "a bare number is a quantity too");
}
