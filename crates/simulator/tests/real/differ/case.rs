// SPDX-License-Identifier: Apache-2.0
//! Cases as they are written: objects, then steps.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

/// One manifest and what happens to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// What it is about.
    pub features: Vec<String>,
    /// The spec of a Job called `job`. It has a plain template unless it brings one.
    #[serde(default)]
    pub job: Option<Value>,
    /// Whole objects. The namespace is the case's own. Nodes are shared: their names must be unique.
    #[serde(default)]
    pub objects: Vec<Value>,
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Reasons of conditions between which the real controllers decide by chance, and of events that are told by
    /// chance: by which of them is faster.
    #[serde(default)]
    pub by_chance: Vec<String>,
}

/// One thing to do. Everything becomes still after it, then the outcomes are compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum Step {
    Pods(Pods),
    Create(Value),
    Patch {
        kind: String,
        name: String,
        body: Value,
    },
    /// Merges into the status.
    Status {
        kind: String,
        name: String,
        body: Value,
    },
    Delete {
        kind: String,
        name: String,
        propagation: Option<String>,
    },
    /// Takes all finalizers from an object.
    Unfinalize {
        kind: String,
        name: String,
    },
    /// Lets seconds pass.
    Wait(u64),
}

/// Some of the pods that have not stopped, and what happens to them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pods {
    /// Those with these completion indexes or ordinals.
    pub index: Option<Vec<i64>>,
    /// Those with these labels.
    pub labels: std::collections::BTreeMap<String, String>,
    /// Those of this phase only.
    pub phase: Option<String>,
    /// Those that are about to go, instead of the others.
    pub terminating: bool,
    /// Those that have stopped, instead of the others.
    pub stopped: bool,
    /// No more than so many.
    pub count: Option<usize>,
    /// The node to bind them to, which may be `its own` where a DaemonSet has said which.
    pub bind: Option<String>,
    /// `Running`, `Ready`, `Succeeded` or `Failed`.
    pub set: Option<String>,
    pub exit: Option<i64>,
    pub restarts: Option<i64>,
    pub ip: Option<String>,
    /// A condition that becomes true.
    pub condition: Option<String>,
    /// `gracefully` or `now`.
    pub delete: Option<String>,
    pub unfinalize: bool,
    pub relabel: Option<Value>,
}

pub fn read(folder: &Path) -> Result<Vec<Case>> {
    let mut files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        let found: Vec<Case> = serde_saphyr::from_multiple(&text).with_context(|| file.display().to_string())?;
        cases.extend(found);
    }
    Ok(cases)
}

impl Case {
    pub fn all_objects(&self) -> Vec<Value> {
        let job = self.job.clone().map(|mut spec| {
            let plain =
                json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "x" }] } });
            let fields = spec.as_object_mut().unwrap();
            fields.entry("template").or_insert(plain);
            json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "job" }, "spec": spec })
        });
        self.objects.iter().cloned().chain(job).collect()
    }

    /// The kinds that are compared.
    pub fn kinds(&self) -> Vec<&'static str> {
        let created =
            self.steps.iter().filter_map(|step| if let Step::Create(object) = step { Some(object) } else { None });
        let all: Vec<_> = self.objects.iter().chain(created).collect();
        let has = |kind: &str| all.iter().any(|object| object["kind"] == kind);
        let mut kinds = vec!["Job", "Pod", "ConfigMap"];
        let more: &[(&str, &[&'static str])] = &[
            ("ReplicaSet", &["ReplicaSet"]),
            ("Deployment", &["Deployment", "ReplicaSet"]),
            ("StatefulSet", &["StatefulSet", "ControllerRevision", "PersistentVolumeClaim"]),
            ("DaemonSet", &["DaemonSet", "ControllerRevision"]),
            ("PodDisruptionBudget", &["PodDisruptionBudget"]),
            ("ResourceQuota", &["ResourceQuota"]),
            ("Service", &["Endpoints", "EndpointSlice"]),
        ];
        kinds.extend(more.iter().filter(|(kind, _)| has(kind)).flat_map(|(_, all)| all.iter().copied()));
        kinds
    }
}

/// Pods without a token need no account, which is one thing less to wait for.
pub fn no_tokens(object: &mut Value) {
    for at in ["/spec/template/spec", "/spec"] {
        if let Some(spec) = object.pointer_mut(at).and_then(Value::as_object_mut)
            && spec.contains_key("containers")
        {
            spec.insert("automountServiceAccountToken".to_owned(), json!(false));
        }
    }
}
