// SPDX-License-Identifier: Apache-2.0
//! The roles and bindings that every cluster has, as the real server was seen to make them.

use serde_json::{Map, Value, json};

use crate::object::text;

const RECORDED: &str = include_str!("access.json");
const GROUP: &str = "rbac.authorization.k8s.io";

/// The resource and the object of each, bindings behind roles.
pub fn objects() -> Vec<(&'static str, Value)> {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap_or_default();
    let kinds = [
        ("clusterRoles", "clusterroles", "ClusterRole"),
        ("roles", "roles", "Role"),
        ("clusterRoleBindings", "clusterrolebindings", "ClusterRoleBinding"),
        ("roleBindings", "rolebindings", "RoleBinding"),
    ];
    let mut all = Vec::new();
    for (place, plural, kind) in kinds {
        let items = recorded.get(place).and_then(Value::as_array).into_iter().flatten();
        all.extend(items.map(|item| (plural, object(kind, item))));
    }
    all
}

fn object(kind: &str, item: &Value) -> Value {
    let mut labels = Map::from_iter([("kubernetes.io/bootstrapping".to_owned(), json!("rbac-defaults"))]);
    let part_of = text(item, "/partOf");
    if !part_of.is_empty() {
        labels.insert(format!("{GROUP}/aggregate-to-{part_of}"), "true".into());
    }
    let (name, namespace) = (text(item, "/name"), text(item, "/namespace"));
    let mut metadata = json!({
        "name": name,
        "labels": labels,
        "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
    });
    let mut object =
        Map::from_iter([("apiVersion".to_owned(), json!(format!("{GROUP}/v1"))), ("kind".to_owned(), json!(kind))]);
    if let (false, Some(metadata)) = (namespace.is_empty(), metadata.as_object_mut()) {
        metadata.insert("namespace".into(), namespace.into());
    }
    object.insert("metadata".into(), metadata);
    if kind.ends_with("Binding") {
        let of = kind.trim_end_matches("Binding");
        object.insert("roleRef".into(), json!({ "apiGroup": GROUP, "kind": of, "name": text(item, "/role") }));
        let subjects = item.get("subjects").and_then(Value::as_array).into_iter().flatten();
        object.insert("subjects".into(), subjects.filter_map(Value::as_str).map(subject).collect());
    } else if item.get("collects").is_some() {
        let label = format!("{GROUP}/aggregate-to-{name}");
        object.insert(
            "aggregationRule".into(),
            json!({ "clusterRoleSelectors": [{ "matchLabels": { label: "true" } }] }),
        );
    } else {
        object.extend(item.get("rules").map(|rules| ("rules".to_owned(), rules.clone())));
    }
    Value::Object(object)
}

/// From `Group system:masters`, or `ServiceAccount kube-system/x`.
fn subject(text: &str) -> Value {
    let (kind, name) = text.split_once(' ').unwrap_or_default();
    match (kind, name.split_once('/')) {
        ("ServiceAccount", Some((namespace, name))) => json!({ "kind": kind, "name": name, "namespace": namespace }),
        _ => json!({ "kind": kind, "apiGroup": GROUP, "name": name }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_binding_names_a_role_that_is_there() {
        let all = objects();
        assert!(all.len() > 100, "{}", all.len());
        let key =
            |object: &Value| format!("{}/{}", text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        for (plural, binding) in all.iter().filter(|(plural, _)| plural.ends_with("bindings")) {
            let role = format!("{}/{}", text(binding, "/metadata/namespace"), text(binding, "/roleRef/name"));
            let of = plural.replace("bindings", "s");
            assert!(all.iter().any(|(plural, object)| **plural == of && key(object) == role), "{role}");
        }
    }
}
