// SPDX-License-Identifier: Apache-2.0
//! What a forced apply leaves out must not be what protects us.

use bivouac_runtime::reconcile::by_force;
use bivouac_testenv::TestCluster;
use kube::{
    Api,
    api::Patch,
    core::{ApiResource, DynamicObject},
};
use serde_json::json;

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
