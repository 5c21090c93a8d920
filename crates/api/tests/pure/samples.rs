// SPDX-License-Identifier: Apache-2.0
//! The samples of the contracts as typed objects, and the question whether they survive being written back.

use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One sample: where it is from, as written, and as read.
pub struct Sample<K> {
    pub file: String,
    pub written: Value,
    pub object: K,
}

/// Every sample of the kind; none (after saying so) where the contracts are not there.
pub fn samples<K>(project: &str) -> Vec<Sample<K>>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("BIVOUAC_SHARED").map_or_else(default, PathBuf::from);
    let Ok(folder) = std::fs::read_dir(shared.join("contracts/samples").join(project)) else {
        println!("NOT RUN: contracts absent");
        return Vec::new();
    };
    let found: Vec<_> = folder.flat_map(|entry| read(&entry.unwrap().path())).collect();
    assert!(!found.is_empty(), "no sample of {} in {project}", K::kind(&()));
    found
}

fn read<K>(path: &Path) -> Vec<Sample<K>>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let text = std::fs::read_to_string(path).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let ours = documents.into_iter().filter(|d| d["apiVersion"] == *K::api_version(&()) && d["kind"] == *K::kind(&()));
    let file = path.display().to_string();
    let typed = |d: &Value| serde_json::from_value(d.clone()).unwrap_or_else(|e| panic!("{file}: {e}"));
    ours.map(|written| Sample { file: file.clone(), object: typed(&written), written }).collect()
}

/// Everything that was written and is not null is still there, with the same value. Defaults may have come in.
pub fn survives<K: Serialize>(sample: &Sample<K>) {
    let after = serde_json::to_value(&sample.object).unwrap();
    if let Some(lost) = lost(&sample.written, &after) {
        panic!("{}: lost {lost}\n{after:#}", sample.file);
    }
}

fn lost(before: &Value, after: &Value) -> Option<String> {
    match (before, after) {
        (Value::Null, _) => None,
        (Value::Object(b), Value::Object(a)) => b.iter().find_map(|(key, value)| {
            lost(value, a.get(key).unwrap_or(&Value::Null)).map(|deeper| format!(".{key}{deeper}"))
        }),
        (Value::Array(b), Value::Array(a)) if b.len() == a.len() => {
            b.iter().zip(a).find_map(|(b, a)| lost(b, a).map(|deeper| format!("[]{deeper}")))
        }
        // A quantity may be written as a number, and comes back as the text of that number.
        (Value::Number(b), Value::String(a)) if b.to_string() == *a => None,
        _ => (before != after).then(|| format!(": {before} became {after}")),
    }
}
