// SPDX-License-Identifier: Apache-2.0
//! Answers, and how they go over the wire.

pub mod table;

use std::{convert::Infallible, sync::Arc};

use bytes::{BufMut, Bytes, BytesMut};
use futures::Stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::{Value, json};

use self::table::Setting;
use crate::{
    registry::Resource,
    request::accept::{Accepted, Encoding, Form},
    status::Status,
};

/// The body of every answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What a request is answered with.
pub enum Answer {
    /// One object of a resource.
    Object {
        code: StatusCode,
        resource: Arc<Resource>,
        body: Bytes,
    },
    /// Many objects of a resource, in the forms of a list.
    List(List),
    /// Any other JSON document.
    Document {
        code: StatusCode,
        body: Value,
    },
    Text {
        code: StatusCode,
        body: String,
    },
    /// A document in an encoding of its own.
    Raw {
        content_type: &'static str,
        body: Bytes,
    },
    Watch(Box<dyn Stream<Item = Bytes> + Send + Unpin>),
    Refusal(Status),
    /// No such path.
    Absent,
}

/// Objects with what a list says about itself.
pub struct List {
    pub resource: Arc<Resource>,
    pub items: Vec<Bytes>,
    pub revision: u64,
    pub continue_token: Option<String>,
    pub remaining: Option<u64>,
}

/// Writes an answer in the form that the caller accepts.
pub fn render(answer: Answer, accepted: Accepted, setting: Setting, warnings: &[String]) -> Response<Body> {
    let mut response = match answer {
        Answer::Object { code, resource, body } => object(code, &resource, body, accepted, setting),
        Answer::List(list) => list.render(accepted, setting),
        Answer::Document { code, body } => encoded(code, to_bytes(&body), accepted.encoding),
        Answer::Text { code: StatusCode::NO_CONTENT, .. } => empty(StatusCode::NO_CONTENT),
        Answer::Text { code, body } => full(code, "text/plain; charset=utf-8", body.into()),
        Answer::Raw { content_type, body } => full(StatusCode::OK, content_type, body),
        Answer::Watch(stream) => watch(stream, accepted),
        Answer::Refusal(status) if status.is_page() => page_not_found(),
        Answer::Refusal(status) => refusal(&status, accepted.encoding),
        Answer::Absent => page_not_found(),
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    for warning in warnings {
        let text = format!("299 - {}", quoted(warning));
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.append(header::WARNING, value);
        }
    }
    response
}

fn object(code: StatusCode, resource: &Resource, body: Bytes, accepted: Accepted, setting: Setting) -> Response<Body> {
    match accepted.form {
        Form::Table => match serde_json::from_slice(&body) {
            Ok(object) => encoded(code, to_bytes(&table::of_object(resource, &object, setting)), accepted.encoding),
            Err(error) => refusal(&Status::internal(error), accepted.encoding),
        },
        Form::PartialMetadata => match serde_json::from_slice::<Value>(&body) {
            Ok(object) => encoded(code, to_bytes(&partial(&object)), accepted.encoding),
            Err(error) => refusal(&Status::internal(error), accepted.encoding),
        },
        Form::PartialMetadataList => {
            refusal(&crate::status::Status::not_acceptable(&crate::decode::MEDIA_TYPES), accepted.encoding)
        }
        _ => encoded(code, body, accepted.encoding),
    }
}

/// The object with nothing but its metadata.
pub fn partial(object: &Value) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

impl List {
    fn metadata(&self) -> Value {
        let mut metadata = json!({ "resourceVersion": self.revision.to_string() });
        if let Some(map) = metadata.as_object_mut() {
            match &self.continue_token {
                Some(token) => {
                    map.insert("continue".into(), token.as_str().into());
                    if let Some(remaining) = self.remaining {
                        map.insert("remainingItemCount".into(), remaining.into());
                    }
                }
                // Lists of custom resources always have the field.
                None if self.resource.custom().is_some() => {
                    map.insert("continue".into(), "".into());
                }
                None => {}
            }
        }
        metadata
    }

    fn render(self, accepted: Accepted, setting: Setting) -> Response<Body> {
        match accepted.form {
            Form::Table => {
                let mut metadata = self.metadata();
                if self.continue_token.is_none() {
                    crate::object::as_object(&mut metadata).remove("continue");
                }
                let table = table::of_list(&self.resource, &self.items, metadata, setting);
                encoded(StatusCode::OK, to_bytes(&table), accepted.encoding)
            }
            Form::PartialMetadataList => {
                let parsed = self.items.iter().filter_map(|item| serde_json::from_slice::<Value>(item).ok());
                let items: Vec<Value> = parsed.map(|object| partial(&object)).collect();
                let body = json!({
                    "apiVersion": "meta.k8s.io/v1",
                    "kind": "PartialObjectMetadataList",
                    "metadata": self.metadata(),
                    "items": items,
                });
                encoded(StatusCode::OK, to_bytes(&body), accepted.encoding)
            }
            Form::PartialMetadata => refusal(&Status::not_acceptable(&crate::decode::MEDIA_TYPES), accepted.encoding),
            _ if accepted.encoding == Encoding::Json => full(StatusCode::OK, "application/json", self.to_bytes()),
            _ => encoded(StatusCode::OK, self.to_bytes(), accepted.encoding),
        }
    }

    /// The list as its items are stored, without parsing any of them.
    fn to_bytes(&self) -> Bytes {
        let size: usize = self.items.iter().map(|item| item.len() + 1).sum();
        let mut body = BytesMut::with_capacity(size + 256);
        let head = json!({ "apiVersion": &*self.resource.api_version, "kind": &*self.resource.list_kind, "metadata": self.metadata() });
        let head = head.to_string();
        body.put_slice(head.as_bytes().get(..head.len() - 1).unwrap_or_default());
        body.put_slice(b",\"items\":[");
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                body.put_u8(b',');
            }
            body.put_slice(item);
        }
        body.put_slice(b"]}\n");
        body.freeze()
    }
}

fn watch(stream: Box<dyn Stream<Item = Bytes> + Send + Unpin>, accepted: Accepted) -> Response<Body> {
    use futures::StreamExt;
    let content_type = match accepted.encoding {
        Encoding::Json => "application/json",
        Encoding::Yaml => "application/yaml",
    };
    let frames = stream.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn refusal(status: &Status, encoding: Encoding) -> Response<Body> {
    let body = serde_json::to_vec(status).unwrap_or_default();
    let mut response = encoded(status.http_code(), body.into(), encoding);
    if let Some(after) = status.details.as_ref().and_then(|details| details.retry_after_seconds)
        && let Ok(value) = HeaderValue::from_str(&after.to_string())
    {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

fn page_not_found() -> Response<Body> {
    full(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", Bytes::from_static(b"404 page not found\n"))
}

fn encoded(code: StatusCode, json: Bytes, encoding: Encoding) -> Response<Body> {
    match encoding {
        // A line, as the real server ends its answers.
        Encoding::Json => full(code, "application/json", [&*json, b"\n"].concat().into()),
        Encoding::Yaml => {
            let value: Value = serde_json::from_slice(&json).unwrap_or_default();
            let text = serde_saphyr::to_string(&value).unwrap_or_default();
            full(code, "application/yaml", text.into())
        }
    }
}

fn full(code: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *response.status_mut() = code;
    response
}

/// JSON of a value. A value can always be written.
pub fn to_bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// A quoted string of a header.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .filter(|c| !c.is_control())
        .flat_map(|c| if matches!(c, '"' | '\\') { vec!['\\', c] } else { vec![c] })
        .collect();
    format!("\"{escaped}\"")
}
