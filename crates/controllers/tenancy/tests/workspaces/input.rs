// SPDX-License-Identifier: Apache-2.0
//! What the API server itself refuses, and in which words.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::stage::{Stage, eventually};

const DRY_RUN: &str = "/apis/tenant.otterscale.io/v1alpha1/workspaces?dryRun=All&fieldValidation=Strict";

pub async fn wrong_input_is_refused_with_the_path_and_the_rule() {
    let stage = Stage::shared().await;
    let admin = json!({"role": "admin", "subject": "ada"});
    let many = |count: usize| json!({"members": vec![&admin; count]});
    let subject = |text: &str| json!({"members": [{"role": "admin", "subject": text}]});
    let namespace = |name: &str| json!({"members": [admin], "namespace": name});
    let allowed =
        |name: &str| json!({"members": [admin], "networkIsolation": {"enabled": true, "allowedNamespaces": [name]}});

    let refused = [
        (
            json!({"members": [{"role": "edit", "subject": "ada"}]}),
            "at least one workspace member must have role 'admin'",
        ),
        (json!({"members": []}), "spec.members in body should have at least 1 items"),
        (json!({}), "spec.members: Required value"),
        (namespace("kube-system"), "namespace is reserved and cannot be used for a workspace"),
        (namespace("Team"), "spec.namespace in body should match"),
        (namespace(&"n".repeat(64)), "spec.namespace: Too long"),
        (allowed("BAD_NAMESPACE"), "spec.networkIsolation.allowedNamespaces[0]"),
        (allowed("BAD_NAMESPACE"), "should match '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)$'"),
        (subject(&"s".repeat(254)), "spec.members[0].subject: Too long"),
        (subject(""), "spec.members[0].subject in body should be at least 1 chars long"),
        (
            json!({"members": [{"role": "owner", "subject": "ada"}]}),
            "spec.members[0].role: Unsupported value: \"owner\"",
        ),
        (many(1025), "spec.members: Too many: 1025: must have at most 1024 items"),
        (json!({"members": [admin], "colour": "red"}), "unknown field \"spec.colour\""),
        (json!({"members": "nobody"}), "spec.members"),
    ];
    for (spec, words) in refused {
        let said = attempt(&stage, &stage.name("wrong"), &spec).await.expect_err(words);
        assert!(said.contains(words), "expected {words:?} in: {}", said.chars().take(600).collect::<String>());
    }
    let said = attempt(&stage, &"w".repeat(254), &many(1)).await.unwrap_err();
    assert!(said.contains("metadata.name") && said.contains("no more than 253"), "{said}");

    let accepted =
        [namespace(&"n".repeat(63)), subject(&"s".repeat(253)), subject("Zoë 王小明 🌲"), many(1024), namespace("")];
    for spec in accepted {
        attempt(&stage, &"w".repeat(253), &spec).await.unwrap();
    }
}

pub async fn the_namespace_cannot_be_changed() {
    let stage = Stage::shared().await;
    let name = stage.name("fixed");
    stage.create(&name, json!({"namespace": name})).await;
    let unnamed = stage.name("unnamed");
    stage.create(&unnamed, json!({})).await;
    let changes =
        [(&name, json!(format!("{name}-b"))), (&name, Value::Null), (&unnamed, json!(format!("{unnamed}-b")))];
    for (name, namespace) in changes {
        let change = json!({"spec": {"namespace": namespace}});
        let said = stage.workspaces().patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap_err();
        assert!(said.to_string().contains("namespace is immutable"), "{said}");
    }
}

/// Asks the server what it would say; nothing is stored.
async fn attempt(stage: &Stage, name: &str, spec: &Value) -> Result<(), String> {
    let object = json!({
        "apiVersion": "tenant.otterscale.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}, "spec": spec,
    });
    // A CRD that was just installed answers with 404 or 503 for a moment.
    eventually("the server decides", async || {
        let request = http::Request::post(DRY_RUN).body(object.to_string().into_bytes()).unwrap();
        match stage.client.request::<Value>(request).await {
            Ok(_) => Ok(Ok(())),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 429 | 503) => Err(status.message),
            Err(kube::Error::Api(status)) => Ok(Err(status.message)),
            Err(error) => Err(error.to_string()),
        }
    })
    .await
}
