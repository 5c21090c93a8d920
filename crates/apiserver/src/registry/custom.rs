// SPDX-License-Identifier: Apache-2.0
//! Resources that a CustomResourceDefinition adds.

use std::{cmp::Ordering, sync::Arc};

use serde_json::{Value, json};

use super::{Backing, Resource, join, rules::Rules};
use crate::{
    builtin::{Column, Subresource},
    object::{Object, text},
    schema::{Root, Types, structural, validate::Checks},
    store::Keyspace,
};

/// What only custom resources have.
#[derive(Debug)]
pub struct Custom {
    /// The name of the definition.
    pub definition: Box<str>,
    pub storage_api_version: Box<str>,
    pub has_status: bool,
    pub scale: Option<Scale>,
    pub checks: Checks,
    pub rules: Rules,
    /// The revision of the definition that this was read from.
    pub since: u64,
    /// What to tell everybody who uses this version.
    pub warning: Option<String>,
    /// The schema as it was given, for OpenAPI.
    pub open_api: Value,
    pub printer_columns: Vec<PrinterColumn>,
    /// Names and pointers of fields that selectors may ask for.
    pub selectable: Vec<(String, String)>,
    /// The definition is going; only reads and deletions are served.
    pub terminating: bool,
}

#[derive(Debug, Clone)]
pub struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

#[derive(Debug, Clone)]
pub struct PrinterColumn {
    pub json_path: String,
}

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// The resources of an established definition: one per served version.
pub fn resources(definition: &Value) -> Vec<Resource> {
    let versions =
        definition.pointer("/spec/versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let group = text(definition, "/spec/group");
    let flag = |version: &Value, key: &str| version.get(key).and_then(Value::as_bool).unwrap_or_default();
    let storage = versions.iter().find(|version| flag(version, "storage")).map(|version| text(version, "/name"));
    let served: Vec<(&Value, Root)> =
        versions.iter().filter(|version| flag(version, "served")).map(|version| (version, root(version))).collect();
    let all: Vec<(Box<str>, Root)> =
        served.iter().map(|(version, root)| (join(group, text(version, "/name")).into(), root.clone())).collect();
    served
        .iter()
        .map(|(version, root)| resource(definition, version, root.clone(), storage.unwrap_or_default(), &all))
        .collect()
}

fn root(version: &Value) -> Root {
    let (types, id): (Types, _) = structural::read(version.pointer("/schema/openAPIV3Schema"));
    Root::new(Arc::new(types), id)
}

fn resource(definition: &Value, version: &Value, schema: Root, storage: &str, all: &[(Box<str>, Root)]) -> Resource {
    let group = text(definition, "/spec/group");
    let name = text(version, "/name");
    let names = |key: &str| text(definition, &format!("/status/acceptedNames/{key}"));
    let api_version: Box<str> = join(group, name).into();
    let kind: Box<str> = names("kind").into();
    let open_api = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
    let custom = Custom {
        definition: definition.name().into(),
        storage_api_version: join(group, storage).into(),
        has_status: version.pointer("/subresources/status").is_some(),
        scale: version.pointer("/subresources/scale").map(scale),
        checks: Checks::new(&open_api),
        rules: Rules::read(&open_api),
        since: definition.meta_str("resourceVersion").parse().unwrap_or_default(),
        warning: warning(version, &api_version, &kind),
        open_api,
        printer_columns: printer_columns(version)
            .map(|column| PrinterColumn { json_path: text(column, "/jsonPath").into() })
            .collect(),
        selectable: selectable(version),
        terminating: definition.is_going(),
    };
    let namespaced = text(definition, "/spec/scope") == "Namespaced";
    Resource {
        group: group.into(),
        version: name.into(),
        plural: names("plural").into(),
        singular: names("singular").into(),
        list_kind: names("listKind").into(),
        namespaced,
        short_names: strings(definition.pointer("/status/acceptedNames/shortNames")),
        categories: strings(definition.pointer("/status/acceptedNames/categories")),
        verbs: VERBS.iter().map(|verb| Box::from(*verb)).collect(),
        storage_version_hash: Some(storage_version_hash(group, storage, &kind)),
        subresources: subresources(&custom, &kind),
        columns: columns(version),
        keyspace: Keyspace::new(group, names("plural")),
        schema,
        head: super::present::head(&api_version, &kind),
        empty: json!({ "apiVersion": &*api_version, "kind": &*kind }),
        other_versions: all.iter().filter(|(other, _)| *other != api_version).cloned().collect(),
        api_version,
        kind,
        backing: Backing::Custom(Arc::new(custom)),
    }
}

/// What discovery shows so that clients notice when objects are stored differently.
fn storage_version_hash(group: &str, version: &str, kind: &str) -> Box<str> {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{group}/{version}/{kind}").as_bytes());
    BASE64_STANDARD.encode(digest.as_ref().get(..8).unwrap_or_default()).into()
}

fn warning(version: &Value, api_version: &str, kind: &str) -> Option<String> {
    let deprecated = version.get("deprecated").and_then(Value::as_bool).unwrap_or_default();
    let given = version.get("deprecationWarning").and_then(Value::as_str);
    deprecated.then(|| given.map_or_else(|| format!("{api_version} {kind} is deprecated"), str::to_owned))
}

fn scale(scale: &Value) -> Scale {
    let path = |key: &str| Some(pointer(text(scale, &format!("/{key}")))).filter(|path| !path.is_empty());
    Scale {
        spec_replicas: path("specReplicasPath").unwrap_or_default(),
        status_replicas: path("statusReplicasPath").unwrap_or_default(),
        label_selector: path("labelSelectorPath"),
    }
}

/// From `.spec.replicas` to `/spec/replicas`.
fn pointer(path: &str) -> String {
    path.split('.').skip(1).fold(String::new(), |pointer, part| format!("{pointer}/{part}"))
}

fn subresources(custom: &Custom, kind: &str) -> Vec<Subresource> {
    let verbs = || vec!["get".into(), "patch".into(), "update".into()];
    let mut all = Vec::new();
    if custom.has_status {
        all.push(Subresource {
            name: "status".into(),
            kind: kind.into(),
            group: "".into(),
            version: "".into(),
            verbs: verbs(),
        });
    }
    if custom.scale.is_some() {
        all.push(Subresource {
            name: "scale".into(),
            kind: "Scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            verbs: verbs(),
        });
    }
    all
}

fn printer_columns(version: &Value) -> impl Iterator<Item = &Value> {
    version.get("additionalPrinterColumns").and_then(Value::as_array).into_iter().flatten()
}

/// The columns of `kubectl get`: the name first; the age alone if the definition names none.
fn columns(version: &Value) -> Vec<Column> {
    const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
    const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
    let plain = |name: &str, kind: &str, format: &str, description: &str| Column {
        name: name.into(),
        kind: kind.into(),
        format: format.into(),
        priority: 0,
        description: description.into(),
    };
    let mut columns = vec![plain("Name", "string", "name", NAME)];
    for column in printer_columns(version) {
        let name = text(column, "/name");
        let description = match text(column, "/description") {
            "" => format!("Custom resource definition column (in JSONPath format): {}", text(column, "/jsonPath")),
            given => given.to_owned(),
        };
        let priority = column.get("priority").and_then(Value::as_i64).unwrap_or_default();
        columns.push(Column {
            priority: i32::try_from(priority).unwrap_or_default(),
            ..plain(name, text(column, "/type"), text(column, "/format"), &description)
        });
    }
    if printer_columns(version).next().is_none() {
        columns.push(plain("Age", "date", "", AGE));
    }
    columns
}

fn selectable(version: &Value) -> Vec<(String, String)> {
    let list = version.get("selectableFields").and_then(Value::as_array).into_iter().flatten();
    list.map(|field| text(field, "/jsonPath"))
        .map(|path| (path.trim_start_matches('.').to_owned(), pointer(path)))
        .collect()
}

fn strings(list: Option<&Value>) -> Vec<Box<str>> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
}

/// Kubernetes' order of versions: stable before beta before alpha, higher before lower, other names last.
pub fn version_order(a: &str, b: &str) -> Ordering {
    fn rank(version: &str) -> Option<(u8, u32, u32)> {
        let rest = version.strip_prefix('v')?;
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (major, rest) = rest.split_at(digits(rest));
        let major = major.parse().ok()?;
        if rest.is_empty() {
            return Some((2, major, 0));
        }
        let (stability, minor) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
            (Some(minor), _) => (1, minor),
            (_, Some(minor)) => (0, minor),
            _ => return None,
        };
        Some((stability, major, minor.parse().ok()?))
    }
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_come_first() {
        let mut versions = ["v1alpha1", "v2", "foo", "v1beta2", "v10", "v1", "v1beta1"];
        versions.sort_by(|a, b| version_order(a, b));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
