// SPDX-License-Identifier: Apache-2.0
//! From the bytes of a request to an object of a kind, as strictly as the caller wants.

mod go;
mod protobuf;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

use crate::{
    builtin::builtins,
    json,
    object::{Object, as_object, text},
    registry::{Backing, Resource},
    request::options::FieldValidation,
    schema,
    status::Status,
};

pub const MEDIA_TYPES: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// How many complaints of one request become warnings; the real server stops there too.
const MOST_COMPLAINTS: usize = 100;

/// A body that was read, and what is strange about it.
#[derive(Debug)]
pub struct Read {
    pub value: Value,
    pub duplicates: Vec<String>,
    /// The bytes, if they are JSON: complaints come in the order of the document.
    pub body: Bytes,
}

/// The media type of the body. None at all means JSON.
pub fn media_type(headers: &HeaderMap) -> String {
    let header = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = header.split(';').next().unwrap_or_default().trim();
    if media.is_empty() { "application/json".to_owned() } else { media.to_ascii_lowercase() }
}

pub fn is_protobuf(headers: &HeaderMap) -> bool {
    media_type(headers) == "application/vnd.kubernetes.protobuf"
}

/// Reads a body of JSON, YAML or protocol buffers.
pub fn read(headers: &HeaderMap, body: &Bytes, kind: &str) -> Result<Read, Status> {
    match media_type(headers).as_str() {
        "application/json" => read_json(body, kind),
        "application/yaml" => Ok(Read { value: yaml(body)?, duplicates: Vec::new(), body: Bytes::new() }),
        "application/vnd.kubernetes.protobuf" => {
            let value = protobuf::read(body).map_err(|why| {
                Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why}"))
            })?;
            Ok(Read { value, duplicates: Vec::new(), body: Bytes::new() })
        }
        _ => Err(Status::unsupported_media_type(&MEDIA_TYPES)),
    }
}

fn read_json(body: &Bytes, kind: &str) -> Result<Read, Status> {
    let json::Document { value, duplicates } = json::parse(body).map_err(|error| {
        let shown = summary(body);
        let why = go::syntax_error(body, &error);
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {why} ({shown})"
        ))
    })?;
    Ok(Read { value, duplicates, body: body.clone() })
}

pub fn yaml(body: &Bytes) -> Result<Value, Status> {
    // Most of what comes as YAML is JSON.
    if body.first() == Some(&b'{')
        && let Ok(read) = json::parse(body)
    {
        return Ok(read.value);
    }
    let text =
        std::str::from_utf8(body).map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    let value: Value =
        serde_saphyr::from_str(text).map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    // Once more through JSON: numbers are read the one way.
    json::parse(value.to_string().as_bytes()).map(|read| read.value).map_err(Status::internal)
}

/// Makes an object of the resource's kind: known fields only, right types, defaults filled in.
/// Complaints that are not refusals go to `warnings`.
pub fn object(
    resource: &Resource,
    read: Read,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let Read { mut value, duplicates, body } = read;
    identify(resource, &mut value, &body)?;
    let unknown = fit(resource, &mut value).map_err(|why| unfit(resource, &why))?;
    let complaints = complaints(resource, &unknown, &duplicates, &body);
    match validation {
        _ if complaints.is_empty() => {}
        FieldValidation::Ignore => {}
        FieldValidation::Warn => warnings.extend(complaints),
        FieldValidation::Strict => {
            return Err(unfit(resource, &format!("strict decoding error: {}", complaints.join(", "))));
        }
    }
    fill(resource, &mut value);
    Ok(value)
}

/// What is said about fields that the kind does not have, or that came twice, in the order of the document.
pub fn complaints(resource: &Resource, unknown: &[String], duplicates: &[String], body: &[u8]) -> Vec<String> {
    if unknown.is_empty() && duplicates.is_empty() {
        return Vec::new();
    }
    let places = json::places(body);
    let in_order = |paths: &[String]| {
        let mut paths: Vec<String> = paths.to_vec();
        paths.sort_by_key(|path| places.get(path).copied());
        paths
    };
    let word = |path: &String| {
        let what = if duplicates.contains(path) { "duplicate" } else { "unknown" };
        format!("{what} field {path:?}")
    };
    // Two decoders read a custom resource: the first sees what comes twice, the second what is unknown.
    let paths = match resource.backing {
        Backing::Builtin(_) => in_order(&[unknown, duplicates].concat()),
        Backing::Custom(_) => [in_order(duplicates), in_order(unknown)].concat(),
    };
    paths.iter().map(word).take(MOST_COMPLAINTS).collect()
}

/// The beginning of a body, for messages.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    match body.get(..SHOWN) {
        _ if body.is_empty() => "<empty>".to_owned(),
        // What does not look like an object is shown in hexadecimal.
        start if body.first() != Some(&b'{') => {
            let hex: String = start.unwrap_or(body).iter().map(|byte| format!("{byte:02x}")).collect();
            if body.len() > SHOWN { format!("{hex} ...") } else { hex }
        }
        Some(start) if body.len() > SHOWN => format!("{} ...", String::from_utf8_lossy(start)),
        _ => String::from_utf8_lossy(body).into_owned(),
    }
}

/// A refusal of a body that does not fit its kind.
pub fn unfit(resource: &Resource, why: &str) -> Status {
    let Resource { kind, version, .. } = resource;
    Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

/// What Go calls a JSON value.
pub fn json_name(value: &Value) -> &'static str {
    go::json_name(value)
}

/// A character as Go quotes it.
pub fn go_char(c: char) -> String {
    if c.is_control() { format!("'\\u{:04x}'", c as u32) } else { format!("'{c}'") }
}

/// A syntax error in the words of the real server.
pub fn syntax_error(body: &[u8], error: &serde_json::Error) -> String {
    go::syntax_error(body, error)
}

/// Drops unknown fields and refuses wrong types. The answer is the unknown fields.
pub fn fit(resource: &Resource, value: &mut Value) -> Result<Vec<String>, String> {
    let schema = resource.schema.schema();
    match &resource.backing {
        Backing::Builtin(_) => {
            go::check(value, schema)?;
        }
        Backing::Custom(_) => {
            if let (Some(metadata), Some((_, schema))) = (value.get("metadata"), schema.field("metadata")) {
                go::check(metadata, schema)?;
            }
        }
    }
    Ok(schema::prune::prune(value, schema))
}

/// Fills in defaults after an apply. What it has emptied is `null`, and custom resources are judged with that.
pub fn fill_applied(resource: &Resource, value: &mut Value) {
    match &resource.backing {
        Backing::Builtin(_) => fill(resource, value),
        Backing::Custom(_) => {
            schema::default::fill_keeping_nulls(value, resource.schema.schema());
            drop_empty(value.meta_mut());
        }
    }
}

/// Fills in defaults.
pub fn fill(resource: &Resource, value: &mut Value) {
    match &resource.backing {
        Backing::Builtin(_) => builtins().fill(&resource.group, &resource.version, &resource.kind, value),
        Backing::Custom(_) => {
            schema::default::fill(value, resource.schema.schema());
        }
    }
    drop_empty(value.meta_mut());
}

/// Checks `apiVersion` and `kind`.
fn identify(resource: &Resource, value: &mut Value, body: &[u8]) -> Result<(), Status> {
    let unrecognized = |why: String| {
        let (kind, short) = (&resource.kind, summary(body));
        Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({short})"))
    };
    if !value.is_object() {
        return Err(unrecognized(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            go::json_name(value)
        )));
    }
    let (api_version, kind) = (text(value, "/apiVersion"), text(value, "/kind"));
    let (no_version, no_kind) = (api_version.is_empty(), kind.is_empty());
    match &resource.backing {
        Backing::Custom(_) if no_kind => return Err(unrecognized(format!("Object 'Kind' is missing in '{value}'"))),
        Backing::Custom(_) if no_version => {
            return Err(unrecognized(format!("Object 'apiVersion' is missing in '{value}'")));
        }
        Backing::Custom(_) if *api_version != *resource.api_version => {
            return Err(Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                resource.api_version
            )));
        }
        Backing::Custom(_) => {}
        Backing::Builtin(_) => builtin_identity(resource, api_version, kind)?,
    }
    let map = as_object(value);
    if no_kind {
        map.insert("kind".into(), resource.kind.as_ref().into());
    }
    if no_version {
        map.insert("apiVersion".into(), resource.api_version.as_ref().into());
    }
    Ok(())
}

fn builtin_identity(resource: &Resource, api_version: &str, kind: &str) -> Result<(), Status> {
    let (wanted_version, wanted_kind) = (&*resource.api_version, &*resource.kind);
    let fits = |found: &str, wanted: &str| found.is_empty() || found == wanted;
    if fits(api_version, wanted_version) && fits(kind, wanted_kind) {
        return Ok(());
    }
    let (found_version, found_kind) = (
        if api_version.is_empty() { wanted_version } else { api_version },
        if kind.is_empty() { wanted_kind } else { kind },
    );
    let (group, version) = found_version.rsplit_once('/').unwrap_or(("", found_version));
    if builtins().kind(group, version, found_kind).is_none() {
        return Err(Status::bad_request(format!(
            "{found_kind} in version {version:?} cannot be handled as a {wanted_kind}: no kind {found_kind:?} is registered for version {found_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    Err(Status::bad_request(format!(
        "{found_kind} in version {version:?} cannot be handled as a {wanted_kind}: converting ({version}.{found_kind}) to ({}.{wanted_kind}): unknown conversion",
        internal_package(&resource.group)
    )))
}

/// The Go package of the internal types of a group.
fn internal_package(group: &str) -> &str {
    if group.is_empty() { "core" } else { group.split('.').next().unwrap_or(group) }
}

/// Metadata passes through one Go type in the real server, which does not write what is empty.
fn drop_empty(metadata: &mut serde_json::Map<String, Value>) {
    let stays = |field: &str, value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty() || field == "managedFields",
        Value::Number(number) => number.as_i64() != Some(0) || field == "deletionGracePeriodSeconds",
        Value::Bool(_) => true,
    };
    if !metadata.iter().all(|(field, value)| stays(field, value)) {
        metadata.retain(|field, value| stays(field, value));
    }
}
