// SPDX-License-Identifier: Apache-2.0
//! What a forced apply leaves out must not be what protects us.

use bivouac_runtime::reconcile::by_force;
use bivouac_testenv::TestCluster;
use kube::{
    Api, CustomResourceExt,
    api::{Patch, PostParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::json;

use crate::camps::{Camp, CampSpec};

#[tokio::test]
async fn a_field_that_the_server_does_not_know_is_refused() {
    let cluster = TestCluster::shared().await.unwrap();
    let resource = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
    let api = Api::<DynamicObject>::namespaced_with(cluster.client(), "default", &resource);
    let odd = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd-fields"}, "dato": {"a": "b"},
    });
    let refused = api.patch("odd-fields", &by_force("bivouac-test"), &Patch::Apply(&odd)).await;
    let said = refused.unwrap_err().to_string();
    assert!(said.contains(".dato: field not declared in schema"), "{said}");
    assert!(api.get_opt("odd-fields").await.unwrap().is_none());
}

#[tokio::test]
async fn nor_is_one_taken_in_the_status_of_a_custom_resource() {
    let cluster = TestCluster::shared().await.unwrap();
    cluster.install_crds(&[Camp::crd()]).await.unwrap();
    let namespace = cluster.namespace("fields").await.unwrap();
    let api = Api::<Camp>::namespaced(cluster.client(), namespace.name());
    api.create(&PostParams::default(), &Camp::new("odd", CampSpec { tents: Vec::new() })).await.unwrap();
    let status = |body| json!({"apiVersion": "test.bivouac.dev/v1", "kind": "Camp", "status": body});
    let tell = |body| {
        let api = api.clone();
        async move { api.patch_status("odd", &by_force("bivouac-test"), &Patch::Apply(&status(body))).await }
    };
    let said = tell(json!({"pitched": 1, "pitchd": 2})).await.unwrap_err().to_string();
    assert!(said.contains(".status.pitchd: field not declared in schema"), "{said}");
    assert!(api.get("odd").await.unwrap().status.is_none());
    assert_eq!(tell(json!({"pitched": 1})).await.unwrap().status.unwrap().pitched, 1);
}
