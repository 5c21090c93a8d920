// SPDX-License-Identifier: Apache-2.0
//! Every pod runs as a service account of its namespace, and finds its token in a volume.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Review;
use crate::{
    call::Call,
    object::{Object, as_object, child_object, text},
    status::Status,
    store::Keyspace,
};

const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME: &str = "kube-api-access-";
/// An hour and a little: kubelets ask for a new token before an hour is over.
const LIFE: u32 = 3607;
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What the pods of a service account inherit.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Account {
    automount_service_account_token: Option<bool>,
    image_pull_secrets: Option<Value>,
}

pub fn admit(call: &Call, review: &mut Review<'_>) -> Result<(), Status> {
    if !review.creates(call, "", "pods") {
        return Ok(());
    }
    let suffix = call.server.suffix();
    let namespace = review.namespace;
    let Some(pod) = review.object_mut() else { return Ok(()) };
    if pod.annotation(MIRROR).is_some() {
        return validate(call, review);
    }
    let spec = child_object(as_object(pod), "spec");
    let name = match spec.get("serviceAccountName").and_then(Value::as_str).unwrap_or_default() {
        "" => "default".to_owned(),
        name => name.to_owned(),
    };
    spec.insert("serviceAccountName".into(), name.as_str().into());
    spec.insert("serviceAccount".into(), name.as_str().into());
    let found = call.server.store.get(&Keyspace::new("", "serviceaccounts"), &format!("{namespace}/{name}"));
    // Not read as a whole: every pod comes by here.
    let Some(account) = found.and_then(|stored| serde_json::from_slice::<Account>(stored.body()).ok()) else {
        return Err(absent(call, review, &name));
    };
    let of_pod = spec.get("automountServiceAccountToken").and_then(Value::as_bool);
    if of_pod.or(account.automount_service_account_token).unwrap_or(true) {
        mount(spec, &suffix);
    }
    let has_secrets = spec.get("imagePullSecrets").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if let (false, Some(secrets)) = (has_secrets, account.image_pull_secrets) {
        spec.insert("imagePullSecrets".into(), secrets);
    }
    Ok(())
}

pub fn validate(call: &Call, review: &Review<'_>) -> Result<(), Status> {
    let (true, Some(pod)) = (review.creates(call, "", "pods"), review.object()) else { return Ok(()) };
    let name = text(pod, "/spec/serviceAccountName");
    if pod.annotation(MIRROR).is_some() {
        return mirror(pod).map_or(Ok(()), |why| Err(review.forbidden(call, why)));
    }
    let key = format!("{}/{name}", review.namespace);
    if call.server.store.get(&Keyspace::new("", "serviceaccounts"), &key).is_none() {
        return Err(absent(call, review, name));
    }
    Ok(())
}

fn absent(call: &Call, review: &Review<'_>, name: &str) -> Status {
    let namespace = review.namespace;
    let why = format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
    review.forbidden(call, why)
}

/// What a pod that only shows what a kubelet runs may not have.
fn mirror(pod: &Value) -> Option<&'static str> {
    let volumes = || pod.at("/spec/volumes").and_then(Value::as_array).into_iter().flatten();
    let mut sources = volumes().filter_map(|volume| volume.at("/projected/sources")?.as_array()).flatten();
    if !text(pod, "/spec/serviceAccountName").is_empty() {
        return Some("a mirror pod may not reference service accounts");
    }
    if volumes().any(|volume| volume.get("secret").is_some()) || reads_secrets(pod) {
        return Some("a mirror pod may not reference secrets");
    }
    let token = sources.any(|source| source.get("serviceAccountToken").is_some());
    token.then_some("a mirror pod may not use ServiceAccountToken volume projections")
}

fn reads_secrets(pod: &Value) -> bool {
    let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let spec = pod.get("spec").cloned().unwrap_or_default();
    let containers = ["containers", "initContainers", "ephemeralContainers"].into_iter();
    let containers: Vec<Value> = containers.flat_map(|kind| list(&spec, kind)).collect();
    let from_env = |one: &Value| one.at("/valueFrom/secretKeyRef").is_some();
    !list(&spec, "imagePullSecrets").is_empty()
        || containers.iter().any(|one| list(one, "env").iter().any(from_env))
        || containers.iter().any(|one| list(one, "envFrom").iter().any(|from| from.get("secretRef").is_some()))
}

/// Adds the volume with the token, and mounts it in every container that has nothing at its place.
fn mount(spec: &mut Map<String, Value>, suffix: &str) {
    let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let present = volumes.map(|volume| text(volume, "/name")).find(|name| name.starts_with(VOLUME)).map(str::to_owned);
    let name = present.clone().unwrap_or_else(|| format!("{VOLUME}{suffix}"));
    let mut needed = false;
    for kind in ["initContainers", "containers"] {
        for container in spec.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten() {
            let mounts = as_object(container).entry("volumeMounts").or_insert_with(|| json!([]));
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if mounts.iter().all(|mount| text(mount, "/mountPath") != MOUNT) {
                mounts.push(json!({ "name": name, "readOnly": true, "mountPath": MOUNT }));
                needed = true;
            }
        }
    }
    let volumes = spec.entry("volumes").or_insert_with(|| json!([])).as_array_mut();
    if let (true, None, Some(volumes)) = (needed, present, volumes) {
        volumes.push(token_volume(&name));
    }
    spec.retain(|key, value| key != "volumes" || value.as_array().is_some_and(|list| !list.is_empty()));
}

fn token_volume(name: &str) -> Value {
    /// Made once: every pod gets a copy.
    static NAMELESS: LazyLock<Value> = LazyLock::new(|| {
        let namespace =
            json!({ "path": "namespace", "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" } });
        let sources = json!([
            { "serviceAccountToken": { "expirationSeconds": LIFE, "path": "token" } },
            { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
            { "downwardAPI": { "items": [namespace] } },
        ]);
        json!({ "projected": { "sources": sources, "defaultMode": 0o644 } })
    });
    let mut volume = NAMELESS.clone();
    as_object(&mut volume).insert("name".into(), name.into());
    volume
}
