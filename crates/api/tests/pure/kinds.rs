// SPDX-License-Identifier: Apache-2.0
//! What the tests of all groups ask of a kind: how its CRD reads, and that the contract's samples survive it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The finished CRD of that name.
pub fn crd(name: &str) -> CustomResourceDefinition {
    let found = bivouac_api::crds().into_iter().find(|crd| crd.metadata.name.as_deref() == Some(name));
    found.unwrap_or_else(|| panic!("no CRD is called {name}"))
}

/// Scope, short names and printer columns (those of `-o wide` in brackets), as one line each.
pub fn face(name: &str) -> [String; 3] {
    let spec = crd(name).spec;
    let columns = spec.versions.first().and_then(|v| v.additional_printer_columns.clone()).unwrap_or_default();
    let columns = columns.iter().map(|c| match c.priority {
        Some(1..) => format!("[{}]", c.name),
        _ => c.name.clone(),
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    [spec.scope, spec.names.short_names.unwrap_or_default().join(", "), columns]
}

/// The schema of the first version at a path of property names; `[]` enters a list, `{}` a map.
pub fn schema(name: &str, path: &str) -> Value {
    let version = crd(name).spec.versions.into_iter().next().unwrap();
    let mut node = serde_json::to_value(version.schema.unwrap().open_api_v3_schema.unwrap()).unwrap();
    for step in path.split('.') {
        node = match step {
            "[]" => node["items"].take(),
            "{}" => node["additionalProperties"].take(),
            name => node["properties"][name].take(),
        };
        assert!(node.is_object(), "{name}: no {step} in {path}");
    }
    node
}

/// Reads every sample of the kind, writes it back and compares. Returns how many there were, or `None` (after saying
/// so) where the contracts are not there.
pub fn samples<K>(project: &str) -> Option<usize>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
{
    let Some(folder) = shared().map(|s| s.join("contracts/samples").join(project)).filter(|f| f.is_dir()) else {
        println!("NOT RUN: contracts absent");
        return None;
    };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let objects = files.flat_map(|file| documents(&file).into_iter().map(move |object| (file.clone(), object)));
    let ours =
        objects.filter(|(_, o)| o["apiVersion"] == K::api_version(&()).as_ref() && o["kind"] == K::kind(&()).as_ref());
    Some(ours.map(|(file, object)| round_trip::<K>(&file, object)).count())
}

fn round_trip<K: Serialize + DeserializeOwned>(file: &Path, mut sample: Value) {
    let object: K = serde_json::from_value(sample.clone()).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let written = serde_json::to_value(&object).unwrap();
    drop_nulls(&mut sample);
    prune_outdated(file, &mut sample);
    if let Some(lost) = lost(&sample, &written, "") {
        panic!("{}: lost {lost}\n{written:#}", file.display());
    }
}

/// One upstream sample is older than upstream's own CRD: its whole spec is pruned there too.
fn prune_outdated(file: &Path, sample: &mut Value) {
    if file.ends_with("config--samples--infra_v1_colony.yaml") {
        sample["spec"] = Value::Object(Default::default());
    }
}

/// The first path whose value in `before` is not in `after`. Defaults may be added, nothing may be lost.
fn lost(before: &Value, after: &Value, path: &str) -> Option<String> {
    match (before, after) {
        (Value::Object(b), Value::Object(a)) => {
            b.iter().find_map(|(k, v)| lost(v, a.get(k).unwrap_or(&Value::Null), &format!("{path}.{k}")))
        }
        (Value::Array(b), Value::Array(a)) if b.len() == a.len() => {
            b.iter().zip(a).enumerate().find_map(|(i, (b, a))| lost(b, a, &format!("{path}[{i}]")))
        }
        _ => (before != after).then(|| format!("{path}: {before} became {after}")),
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn documents(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    serde_saphyr::from_multiple(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

fn shared() -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("BIVOUAC_SHARED").map_or_else(default, PathBuf::from);
    folder.is_dir().then_some(folder)
}
