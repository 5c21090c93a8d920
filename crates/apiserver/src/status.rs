// SPDX-License-Identifier: Apache-2.0
//! Refusals, in the words of the real server: `metav1.Status`.

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// Why a request was refused, as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub kind: Box<str>,
    pub api_version: Box<str>,
    pub metadata: serde_json::Map<String, serde_json::Value>,
    pub status: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub message: String,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Details>>,
    pub code: u16,
}

/// What the refusal is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub group: String,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub uid: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// One of several causes, usually one per field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub field: String,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Status {}

impl Status {
    /// A refusal with a code, a reason and a sentence.
    pub fn new(code: StatusCode, reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind: "Status".into(),
            api_version: "v1".into(),
            metadata: serde_json::Map::new(),
            status: "Failure".into(),
            message: message.into(),
            reason: reason.into(),
            details: None,
            code: code.as_u16(),
        }
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
