// SPDX-License-Identifier: Apache-2.0
//! Every namespace gets its account, and gets it back.

use serde_json::json;

use crate::stage::{self, Stage};

#[test]
fn every_namespace_has_an_account() {
    stage::run(async {
        let stage = Stage::new().await;
        stage.apply(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team" } })).await;
        stage.settle().await;
        let path = "/api/v1/namespaces/team/serviceaccounts/default";
        let first = stage.get(path).await.expect("it was made");
        stage.delete(path).await;
        stage.settle().await;
        let second = stage.get(path).await.expect("it was made again");
        assert_ne!(first.pointer("/metadata/uid"), second.pointer("/metadata/uid"));
        stage.delete("/api/v1/namespaces/team").await;
        stage.settle().await;
        assert_eq!(stage.get("/api/v1/namespaces/team").await, None);
    });
}
