// SPDX-License-Identifier: Apache-2.0
//! The `scale` subresource: the number of replicas of any kind that has one, in one form.

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    patch::{self, Change},
    update::check_condition,
};
use crate::{
    answer::Answer,
    call::Call,
    decode,
    field::Error,
    merge,
    object::{Object, as_object, child_object, set},
    registry::{Resource, custom},
    request::selector::labels_text,
    status::Status,
    write::{self, Outcome},
};

const TRIES: usize = 5;

pub async fn run(call: &mut Call, body: &Bytes) -> Result<Answer, Status> {
    let paths = paths(&call.resource);
    if call.method == Method::GET {
        let stored = call.server.store.get(&call.resource.keyspace, &call.key()).ok_or_else(|| call.not_found())?;
        return Ok(answer(&of(&call.resource.read(&stored), &paths)));
    }
    let change = if call.method == Method::PATCH { Some(patch::read(call, body)?) } else { None };
    if let Some(change) = &change {
        patch::check_options(call, change)?;
    }
    for _ in 0..TRIES {
        let stored = call.server.store.get(&call.resource.keyspace, &call.key()).ok_or_else(|| call.not_found())?;
        let old = call.resource.read(&stored);
        let new = match &change {
            Some(Change::Apply(config)) => apply(call, &old, config, &paths)?,
            Some(change) => {
                let before = of(&old, &paths);
                let after = patch::changed(call, &before, change)?;
                scaled(call, &old, &after, &paths)?
            }
            None => {
                let wanted = decode::read(&call.headers, body, "Scale")?.value;
                check_condition(call, &wanted, &old).or_else(|status| {
                    // An update of the scale needs no version.
                    if wanted.meta_str("resourceVersion").is_empty() { Ok(()) } else { Err(status) }
                })?;
                scaled(call, &old, &wanted, &paths)?
            }
        };
        match write::replace(call, &stored, &old, new, "scale").await {
            Ok(written) => return Ok(answer(&of(&written.object, &paths))),
            Err(Outcome::Refused(status)) => return Err(status),
            Err(Outcome::Raced) => {}
        }
    }
    Err(Status::modified(&call.resource.group, &call.resource.plural, call.name()))
}

fn answer(scale: &Value) -> Answer {
    Answer::Document { code: StatusCode::OK, body: scale.clone() }
}

/// Where the numbers are in the object.
struct Paths {
    spec: String,
    status: String,
    selector: Option<Selector>,
}

enum Selector {
    /// A label selector object.
    Object,
    /// A plain map of labels.
    Map,
    /// A text at this place.
    Text(String),
}

fn paths(resource: &Resource) -> Paths {
    match resource.custom().and_then(|custom| custom.scale.clone()) {
        Some(custom::Scale { spec_replicas, status_replicas, label_selector }) => {
            Paths { spec: spec_replicas, status: status_replicas, selector: label_selector.map(Selector::Text) }
        }
        None => Paths {
            spec: "/spec/replicas".into(),
            status: "/status/replicas".into(),
            selector: Some(if &*resource.kind == "ReplicationController" { Selector::Map } else { Selector::Object }),
        },
    }
}

/// The scale of an object.
fn of(object: &Value, paths: &Paths) -> Value {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.meta().and_then(|meta| meta.get(field)) {
            set(&mut metadata, field, value.clone());
        }
    }
    let mut status = json!({ "replicas": number(&paths.status) });
    let selector = match &paths.selector {
        Some(Selector::Object) => object.pointer("/spec/selector").map(labels_text),
        Some(Selector::Map) => object.pointer("/spec/selector").map(|map| labels_text(&json!({ "matchLabels": map }))),
        Some(Selector::Text(pointer)) => object.pointer(pointer).and_then(Value::as_str).map(str::to_owned),
        None => None,
    };
    if let Some(selector) = selector.filter(|text| !text.is_empty()) {
        set(&mut status, "selector", selector);
    }
    let replicas = number(&paths.spec);
    let spec = if replicas == 0 { json!({}) } else { json!({ "replicas": replicas }) };
    json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status })
}

/// The object with the replicas of a scale.
fn scaled(call: &Call, old: &Value, scale: &Value, paths: &Paths) -> Result<Value, Status> {
    let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default();
    if replicas < 0 {
        if call.resource.custom().is_some() {
            let field = paths.spec.replace('/', ".");
            let error = Error::invalid(field, replicas, "should be a non-negative integer");
            return Err(Status::invalid(&call.resource.group, &call.resource.kind, call.name(), &[error]));
        }
        let error = Error::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        return Err(Status::invalid("autoscaling", "Scale", call.name(), &[error]));
    }
    let mut new = old.clone();
    put(&mut new, &paths.spec, replicas.into());
    Ok(timeless(write::manage(call, Some(old), new, "scale")))
}

/// The real server loses the times of managers of the scale on their way between the two kinds.
fn timeless(mut object: Value) -> Value {
    let managers = object.meta_mut().get_mut("managedFields").and_then(Value::as_array_mut);
    for entry in managers.into_iter().flatten().filter_map(Value::as_object_mut) {
        if entry.get("subresource").and_then(Value::as_str) == Some("scale") {
            entry.remove("time");
        }
    }
    // Those without a time come first among the updates.
    let managers = object.meta_mut().get_mut("managedFields").and_then(Value::as_array_mut);
    if let Some(managers) = managers {
        managers.sort_by_key(|entry| {
            let updates = entry.get("operation").and_then(Value::as_str) != Some("Apply");
            (updates, entry.get("time").and_then(Value::as_str).map(str::to_owned))
        });
    }
    object
}

fn apply(call: &Call, old: &Value, config: &Value, paths: &Paths) -> Result<Value, Status> {
    let resource = call.resource.clone();
    let mut translated = json!({
        "apiVersion": &*resource.api_version,
        "kind": &*resource.kind,
        "metadata": config.get("metadata").cloned().unwrap_or_else(|| json!({})),
    });
    if let Some(replicas) = config.pointer("/spec/replicas") {
        put(&mut translated, &paths.spec, replicas.clone());
    }
    let (now, manager) = (call.server.now(), call.manager());
    let reset = write::reset_fields(&resource, "scale");
    let request =
        merge::Write { kind: resource.merge_kind(), manager: &manager, subresource: "scale", now: &now, reset: &reset };
    let force = call.options.force.unwrap_or_default();
    merge::apply(Some(old), &translated, &request, force).map(timeless).map_err(write::apply_error)
}

/// Sets a value below an object, and makes the way there.
fn put(object: &mut Value, pointer: &str, value: Value) {
    let parts: Vec<&str> = pointer.split('/').skip(1).collect();
    let Some((last, way)) = parts.split_last() else { return };
    let mut map = as_object(object);
    for part in way {
        map = child_object(map, part);
    }
    map.insert((*last).to_owned(), value);
}
