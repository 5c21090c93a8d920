// SPDX-License-Identifier: Apache-2.0
//! The `scale` subresource: the number of replicas of any kind that has one, in one form.

mod managers;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    patch::{self, Change},
    update::{check_condition, match_name},
};
use crate::{
    answer::Answer,
    builtin::builtins,
    call::Call,
    decode,
    field::Error,
    merge,
    object::{Object, as_object, child_object, set},
    registry::{Resource, custom},
    request::selector::labels_text,
    schema::TypeId,
    status::Status,
    write,
};

const TRIES: usize = 5;

pub async fn run(call: &mut Call, body: &Bytes) -> Result<Answer, Status> {
    let paths = paths(&call.resource);
    if call.method == Method::GET {
        let stored = call.server.store.get(&call.resource.keyspace, &call.key()).ok_or_else(|| call.not_found())?;
        let object = call.resource.read(&stored);
        if call.resource.custom().is_some() && object.pointer(&paths.spec).is_none() {
            return Err(Status::internal(format!("the spec replicas field {:?} does not exist", paths.spec_field())));
        }
        return Ok(answer(&of(&object, &paths)));
    }
    let change = if call.method == Method::PATCH { Some(patch::read(call, body)?) } else { None };
    if let Some(change) = &change {
        patch::check_options(call, change)?;
    }
    let scaled = |call: &mut Call, old: &Value| {
        let replicas = managers::Replicas { version: &call.resource.api_version, pointer: &paths.spec };
        let mut before = of(old, &paths);
        before.set_meta("managedFields", replicas.to_scale(old));
        let after = match &change {
            Some(Change::Apply(config)) => apply(call, &before, config)?,
            Some(change) => {
                let after = patch::changed(call, &of(old, &paths), change)?;
                // A patch without the number cannot make one up.
                let known = old.pointer(&paths.spec).or_else(|| after.pointer("/spec/replicas"));
                if known.is_none() && call.resource.custom().is_some() {
                    let field = paths.spec_field();
                    return Err(Status::bad_request(format!("the spec replicas field {field:?} cannot be empty")));
                }
                update(call, &before, &after)
            }
            None => {
                let wanted = decode::read(&call.headers, body, "Scale")?.value;
                check_condition(call, &wanted, old).or_else(|status| {
                    // An update of the scale needs no version.
                    if wanted.meta_str("resourceVersion").is_empty() { Ok(()) } else { Err(status) }
                })?;
                match_name(call, &wanted)?;
                update(call, &before, &wanted)
            }
        };
        check(call, &after, &paths)?;
        let mut new = old.clone();
        put(&mut new, &paths.spec, number(&after, "/spec/replicas").into());
        let managers = replicas.to_object(old, &after);
        if managers.is_empty() {
            new.meta_mut().remove("managedFields");
        } else {
            new.set_meta("managedFields", managers);
        }
        Ok(new)
    };
    let written = write::replace_with(call, "scale", TRIES, scaled).await?.ok_or_else(|| call.not_found())?;
    Ok(answer(&of(&serde_json::from_slice(&written).unwrap_or_default(), &paths)))
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

impl Paths {
    /// The replicas as the definition names them.
    fn spec_field(&self) -> String {
        self.spec.replace('/', ".")
    }
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
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.meta().and_then(|meta| meta.get(field)) {
            set(&mut metadata, field, value.clone());
        }
    }
    let mut status = json!({ "replicas": number(object, &paths.status) });
    let selector = match &paths.selector {
        Some(Selector::Object) => object.pointer("/spec/selector").map(labels_text),
        Some(Selector::Map) => object.pointer("/spec/selector").map(|map| labels_text(&json!({ "matchLabels": map }))),
        Some(Selector::Text(pointer)) => object.pointer(pointer).and_then(Value::as_str).map(str::to_owned),
        None => None,
    };
    if let Some(selector) = selector.filter(|text| !text.is_empty()) {
        set(&mut status, "selector", selector);
    }
    let replicas = number(object, &paths.spec);
    let spec = if replicas == 0 { json!({}) } else { json!({ "replicas": replicas }) };
    json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status })
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// Refuses less than nothing.
fn check(call: &Call, scale: &Value, paths: &Paths) -> Result<(), Status> {
    let replicas = number(scale, "/spec/replicas");
    if replicas >= 0 {
        return Ok(());
    }
    if call.resource.custom().is_some() {
        let error = Error::invalid(paths.spec_field(), replicas, "should be a non-negative integer");
        return Err(Status::invalid(&call.resource.group, &call.resource.kind, call.name(), &[error]));
    }
    let error = Error::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
    Err(Status::invalid("autoscaling", "Scale", call.name(), &[error]))
}

/// The scale with the replicas that are wanted, and who owns them.
fn update(call: &Call, before: &Value, wanted: &Value) -> Value {
    let mut after = before.clone();
    let replicas = number(wanted, "/spec/replicas");
    set(&mut after, "spec", if replicas == 0 { json!({}) } else { json!({ "replicas": replicas }) });
    managed(call, |write| merge::update(Some(before), after, write))
}

fn apply(call: &Call, before: &Value, config: &Value) -> Result<Value, Status> {
    let custom = call.resource.custom().is_some();
    let owned = before.pointer("/metadata/managedFields").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    // The real server has no way between a custom resource and its scale here.
    let failed = |what: &str, name: &str| {
        let version = managers::VERSION;
        let message = format!(
            "{what} object (/{name}; {version}, Kind=Scale) to proper version: request to convert CR to an invalid group/version: {version}"
        );
        Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    };
    if custom && !owned {
        return Err(failed("failed to create manager for existing fields: failed to convert live", ""));
    }
    let force = call.options.force.unwrap_or_default();
    let after = managed(call, |write| merge::apply(Some(before), config, write, force)).map_err(write::apply_error)?;
    // The managers aside, which is where it looks for the way.
    let bare = |scale: &Value| {
        let mut scale = scale.clone();
        scale.meta_mut().remove("managedFields");
        scale
    };
    if custom && bare(before) != bare(&after) {
        return Err(failed("failed to convert new", after.name()));
    }
    match_name(call, &after)?;
    Ok(after)
}

/// Does something as the manager of the request, with scales.
fn managed<T>(call: &Call, run: impl FnOnce(&merge::Write<'_>) -> T) -> T {
    let root = builtins().kind("autoscaling", "v1", "Scale").unwrap_or(TypeId(u32::MAX));
    let (schema, empty) = (builtins().root(root), merge::zero(builtins(), root));
    let kind = merge::Kind {
        api_version: managers::VERSION,
        kind: "Scale",
        schema: schema.schema(),
        empty: &empty,
        custom: call.resource.custom().is_some(),
        versions: &[],
    };
    let (now, manager, reset) = (call.server.now(), call.manager(), merge::Set::default());
    run(&merge::Write { kind, manager: &manager, subresource: "scale", now: &now, reset: &reset })
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
