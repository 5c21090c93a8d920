// SPDX-License-Identifier: Apache-2.0
//! The roles and bindings that the real API server makes when it starts, in short form, for the embedded one.

use anyhow::{Context, Result};
use bivouac_testenv::{Options, TestCluster};
use serde_json::{Map, Value, json};

pub const FILE: &str = "crates/apiserver/src/bootstrap/access.json";

const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";
const PART: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// Starts a cluster and writes down what its API server has made.
pub fn make() -> Result<String> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let without = ["kube-controller-manager", "kube-scheduler", "kwok"].map(str::to_owned).into();
        let cluster = TestCluster::start(Options { without, ..Options::default() }).await?;
        let mut parts = Vec::new();
        for place in ["clusterRoles", "clusterRoleBindings", "roles", "roleBindings"] {
            let path = format!("/apis/rbac.authorization.k8s.io/v1/{}", place.to_lowercase());
            let request = http::Request::get(path).body(Vec::new())?;
            let list: Value = cluster.client().request(request).await?;
            let items = at(&list, "/items").as_array().context("a list has items")?;
            let own = items.iter().filter(|item| at(item, "/metadata/labels").get(BOOTSTRAPPING).is_some());
            let lines: Vec<String> = own.map(|item| short(item).to_string()).collect();
            parts.push(format!("{}: [\n{}\n]", json!(place), lines.join(",\n")));
        }
        Ok(format!("{{\n{}\n}}\n", parts.join(",\n")))
    })
}

/// What is special about one of them: see `bootstrap/access.rs` for the way back.
fn short(item: &Value) -> Value {
    let mut short = Map::new();
    let mut add = |key: &str, value: Value| short.insert(key.to_owned(), value);
    add("name", at(item, "/metadata/name").clone());
    if at(item, "/metadata/namespace").is_string() {
        add("namespace", at(item, "/metadata/namespace").clone());
    }
    let labels = at(item, "/metadata/labels").as_object().into_iter().flatten();
    if let Some(part) = labels.filter_map(|(key, _)| key.strip_prefix(PART)).next() {
        add("partOf", part.into());
    }
    if at(item, "/roleRef").is_object() {
        add("role", at(item, "/roleRef/name").clone());
        add("subjects", at(item, "/subjects").as_array().into_iter().flatten().map(subject).collect());
    } else if at(item, "/aggregationRule").is_object() {
        add("collects", true.into());
    } else {
        add("rules", at(item, "/rules").as_array().cloned().unwrap_or_default().into());
    }
    Value::Object(short)
}

fn subject(subject: &Value) -> Value {
    let text = |key: &str| subject.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("namespace") {
        "" => format!("{} {}", text("kind"), text("name")).into(),
        namespace => format!("{} {namespace}/{}", text("kind"), text("name")).into(),
    }
}

/// The value at a pointer, or null.
fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}
