// SPDX-License-Identifier: Apache-2.0
//! Refusals, in the words of the real server: `metav1.Status`.

use http::StatusCode;
use serde::{Serialize, Serializer, ser::SerializeMap};

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    pub code: u16,
    pub reason: String,
    pub message: String,
    pub details: Option<Box<Details>>,
}

/// What the refusal is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub group: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// One of several causes, usually one per field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cause {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: String,
    pub message: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub field: String,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Status {}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "Status")?;
        map.serialize_entry("apiVersion", "v1")?;
        map.serialize_entry("metadata", &serde_json::Map::new())?;
        map.serialize_entry("status", "Failure")?;
        map.serialize_entry("message", &self.message)?;
        if !self.reason.is_empty() {
            map.serialize_entry("reason", &self.reason)?;
        }
        if let Some(details) = &self.details {
            map.serialize_entry("details", details)?;
        }
        map.serialize_entry("code", &self.code)?;
        map.end()
    }
}

impl Status {
    /// A refusal with a code, a reason and a sentence.
    pub fn new(code: StatusCode, reason: &str, message: impl Into<String>) -> Self {
        Self { code: code.as_u16(), reason: reason.into(), message: message.into(), details: None }
    }

    pub fn with(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub fn internal(message: impl std::fmt::Display) -> Self {
        let cause = Cause { message: message.to_string(), ..Cause::default() };
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", format!("Internal error occurred: {message}"))
            .with(Details { causes: vec![cause], ..Details::default() })
    }

    pub fn http_code(&self) -> StatusCode {
        StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

// === The server's usual refusals ===

/// Names a resource in messages: `deployments.apps`, or `pods` in the core group.
pub fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

impl Status {
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", qualified(group, resource));
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with(Details::of(group, resource, name))
    }

    /// The server has no such path; the answer is a text, see [`Status::is_page`].
    pub fn no_such_page() -> Self {
        Self::new(StatusCode::NOT_FOUND, "", "404 page not found")
    }

    /// Whether the answer is plain text instead of an object.
    pub fn is_page(&self) -> bool {
        self.reason.is_empty() && self.code == 404
    }

    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", qualified(group, resource));
        let code = if fault!(WrongCode) { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::CONFLICT };
        Self::new(code, "AlreadyExists", message).with(Details::of(group, resource, name))
    }

    pub fn conflict(group: &str, resource: &str, name: &str, why: impl std::fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", qualified(group, resource));
        Self::new(StatusCode::CONFLICT, "Conflict", message).with(Details::of(group, resource, name))
    }

    /// The object was changed since the caller read it.
    pub fn modified(group: &str, resource: &str, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(group, resource, name, why)
    }

    /// Fields of the object are not acceptable.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[crate::field::Error]) -> Self {
        // The same thing said twice is one text, but two causes.
        let mut texts: Vec<String> = Vec::new();
        for text in errors.iter().map(ToString::to_string) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let list = match texts.as_slice() {
            [] => "<nil>".to_owned(),
            [one] => one.clone(),
            _ => format!("[{}]", texts.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {list}", qualified(group, kind));
        let causes = errors.iter().map(crate::field::Error::cause).collect();
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
            .with(Details { causes, ..Details::of(group, kind, name) })
    }

    pub fn forbidden(group: &str, resource: &str, name: &str, why: impl std::fmt::Display) -> Self {
        let subject = qualified(group, resource);
        let message = match (subject.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{subject} is forbidden: {why}"),
            (false, false) => format!("{subject} \"{name}\" is forbidden: {why}"),
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with(Details::of(group, resource, name))
    }

    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// A revision that history no longer holds.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub fn method_not_allowed(group: &str, resource: &str, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{}\"", qualified(group, resource));
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).with(Details {
            group: group.into(),
            kind: resource.into(),
            ..Details::default()
        })
    }

    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    pub fn not_acceptable(offered: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", offered.join(", "));
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    pub fn too_many_requests(message: impl Into<String>, after: u32) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
            .with(Details { retry_after_seconds: Some(after), ..Details::default() })
    }
}

impl Details {
    pub fn of(group: &str, kind: &str, name: &str) -> Self {
        Self { name: name.into(), group: group.into(), kind: kind.into(), ..Self::default() }
    }
}
