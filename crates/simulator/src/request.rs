// SPDX-License-Identifier: Apache-2.0
//! Writes, as requests to the API server.

use bivouac_apiserver::Speaker;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use k8s_openapi::{Metadata, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{controller::Refusal, shelf::Key};

/// One change to make.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    Create {
        target: Target,
        body: Value,
        told: Option<Told>,
    },
    Update {
        target: Target,
        body: Value,
        part: Option<&'static str>,
    },
    /// Merges these fields into whatever the object is by now.
    Patch {
        target: Target,
        body: Value,
    },
    Delete {
        target: Target,
        propagation: Propagation,
        grace_seconds: Option<u32>,
    },
    Bind {
        target: Target,
        node: String,
    },
    Event {
        about: Target,
        normal: bool,
        reason: &'static str,
        note: String,
    },
}

/// An event about whoever wanted an object. It ends with the name that the object got, which the server may choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub about: Target,
    pub reason: &'static str,
    pub words: &'static str,
}

/// What happens to those that an object owns when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// Which object a write is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub key: Key,
    pub uid: String,
}

pub fn body<K: Serialize>(object: &K) -> Value {
    // Kubernetes' types always have a JSON form.
    serde_json::to_value(object).unwrap_or_default()
}

// === impl Target ===

impl Target {
    pub fn of<K: Metadata<Ty = ObjectMeta>>(object: &K) -> Self {
        let meta = object.metadata();
        Self {
            api_version: K::API_VERSION,
            kind: K::KIND,
            plural: K::URL_PATH_SEGMENT,
            key: Key::of(meta),
            uid: meta.uid.clone().unwrap_or_default(),
        }
    }

    fn collection(&self) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        let Self { api_version, plural, key, .. } = self;
        match key.namespace.as_str() {
            "" => format!("/{root}/{api_version}/{plural}"),
            namespace => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.key.name)
    }
}

// === impl Write ===

impl Write {
    /// Makes the change, as the controller of this name.
    pub async fn send(&self, server: &Speaker, manager: &str, now: Timestamp) -> Result<(), Refusal> {
        match self {
            Self::Create { target, body, told } => {
                let made = ask(server, manager, Method::POST, &target.collection(), body).await;
                if let (Ok(made), Some(Told { about, reason, words })) = (&made, told) {
                    let name = made.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                    let _ = tell(server, manager, now, about, true, reason, &format!("{words}{name}")).await;
                }
                made
            }
            Self::Update { target, body, part } => {
                let path = part.map_or_else(|| target.path(), |part| format!("{}/{part}", target.path()));
                ask(server, manager, Method::PUT, &path, body).await
            }
            Self::Patch { target, body } => {
                let mut body = body.clone();
                if let Some(meta) = body.get_mut("metadata").and_then(Value::as_object_mut) {
                    meta.insert("uid".to_owned(), json!(target.uid));
                }
                gone_is_fine(ask(server, manager, Method::PATCH, &target.path(), &body).await)
            }
            Self::Delete { target, propagation, grace_seconds } => {
                let mut options = json!({
                    "preconditions": { "uid": target.uid },
                    "propagationPolicy": format!("{propagation:?}"),
                });
                if let (Some(seconds), Some(fields)) = (grace_seconds, options.as_object_mut()) {
                    fields.insert("gracePeriodSeconds".to_owned(), json!(seconds));
                }
                gone_is_fine(ask(server, manager, Method::DELETE, &target.path(), &options).await)
            }
            Self::Bind { target, node } => {
                let binding = json!({
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": { "name": target.key.name, "uid": target.uid },
                    "target": { "kind": "Node", "name": node },
                });
                ask(server, manager, Method::POST, &format!("{}/binding", target.path()), &binding).await
            }
            Self::Event { about, normal, reason, note } => {
                // An event that cannot be told is no reason to stop.
                let _ = tell(server, manager, now, about, *normal, reason, note).await;
                Ok(Value::Null)
            }
        }
        .map(|_| ())
    }
}

/// Somebody was faster, or a later object has the name: what was meant is gone.
fn gone_is_fine(outcome: Result<Value, Refusal>) -> Result<Value, Refusal> {
    outcome.or_else(|refusal| if matches!(refusal.code, 404 | 409) { Ok(Value::Null) } else { Err(refusal) })
}

/// Writes an event, or counts it up if the same was told before.
async fn tell(
    server: &Speaker,
    manager: &str,
    now: Timestamp,
    about: &Target,
    normal: bool,
    reason: &str,
    note: &str,
) -> Result<Value, Refusal> {
    let namespace = if about.key.namespace.is_empty() { "default" } else { &about.key.namespace };
    let name = format!("{}.{:016x}", about.key.name, fingerprint(&[&about.uid, reason, note, manager]));
    let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let collection = format!("/api/v1/namespaces/{namespace}/events");
    let mut involved = json!({
        "apiVersion": about.api_version, "kind": about.kind, "name": about.key.name, "uid": about.uid,
    });
    if let (false, Some(fields)) = (about.key.namespace.is_empty(), involved.as_object_mut()) {
        fields.insert("namespace".to_owned(), json!(namespace));
    }
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": involved,
        "type": if normal { "Normal" } else { "Warning" },
        "reason": reason,
        "message": note,
        "source": { "component": manager },
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    });
    match ask(server, manager, Method::POST, &collection, &event).await {
        Err(refusal) if refusal.reason == "AlreadyExists" => {
            let path = format!("{collection}/{name}");
            let known = ask(server, manager, Method::GET, &path, &Value::Null).await?;
            let count = known.get("count").and_then(Value::as_i64).unwrap_or(1);
            ask(server, manager, Method::PATCH, &path, &json!({ "count": count + 1, "lastTimestamp": at })).await
        }
        outcome => outcome,
    }
}

/// FNV-1a: the same words give the same name, in every process.
fn fingerprint(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

async fn ask(server: &Speaker, manager: &str, method: Method, path: &str, body: &Value) -> Result<Value, Refusal> {
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let manages = matches!(method, Method::POST | Method::PUT | Method::PATCH);
    let uri = if manages { format!("{path}?fieldManager={manager}") } else { path.to_owned() };
    let text = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let request = Request::builder().method(method).uri(uri).header(http::header::CONTENT_TYPE, content);
    let request = request.body(Full::new(text)).map_err(|error| Refusal::ours(&error.to_string()))?;
    let response = server.answer(request).await;
    let code = response.status();
    let read = response.into_body().collect().await.map_err(|_| Refusal::ours("the answer ended early"))?;
    let answer: Value = serde_json::from_slice(&read.to_bytes()).unwrap_or_default();
    if code.is_success() {
        return Ok(answer);
    }
    let text = |field: &str| answer.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    Err(Refusal { code: code.as_u16(), reason: text("reason"), message: text("message") })
}

impl Refusal {
    fn ours(why: &str) -> Self {
        let code = StatusCode::BAD_REQUEST.as_u16();
        Self { code, reason: "BadRequest".to_owned(), message: why.to_owned() }
    }
}
