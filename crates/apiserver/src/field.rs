// SPDX-License-Identifier: Apache-2.0
//! What is wrong with one field, in the words of the real server.

use std::fmt;

use serde_json::Value;

use crate::status::Cause;

/// What is wrong with one field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    pub problem: Problem,
    pub field: String,
    /// The refused value, as the message shows it.
    pub value: Option<Value>,
    pub detail: String,
}

/// The kinds of problems, with the real server's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    Required,
    Invalid,
    TypeInvalid,
    NotSupported,
    Duplicate,
    Forbidden,
    TooLong,
    TooMany,
    NotFound,
    Internal,
}

impl Problem {
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

impl Error {
    /// The same, where the sentence names the place from a field on.
    pub fn within(mut self, field: &str) -> Self {
        if let Some(rest) = self.detail.strip_prefix(field).filter(|_| self.field.starts_with(field)) {
            self.detail = rest.strip_prefix('.').unwrap_or(rest).to_owned();
        }
        self
    }

    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self { problem: Problem::Invalid, field: field.into(), value: Some(value.into()), detail: detail.into() }
    }

    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { problem: Problem::Required, field: field.into(), value: None, detail: detail.into() }
    }

    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { problem: Problem::Forbidden, field: field.into(), value: None, detail: detail.into() }
    }

    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { problem: Problem::Duplicate, field: field.into(), value: Some(value.into()), detail: String::new() }
    }

    pub fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { problem: Problem::NotFound, field: field.into(), value: Some(value.into()), detail: String::new() }
    }

    pub fn type_invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self { problem: Problem::TypeInvalid, ..Self::invalid(field, value, detail) }
    }

    /// The value is not one of those that are known.
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|one| format!("{one:?}")).collect();
        let detail = if known.is_empty() { String::new() } else { format!("supported values: {}", known.join(", ")) };
        Self { problem: Problem::NotSupported, ..Self::invalid(field, value, detail) }
    }

    pub fn too_long(field: impl Into<String>, most: usize) -> Self {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {most} {unit}");
        Self { problem: Problem::TooLong, field: field.into(), value: None, detail }
    }

    pub fn too_many(field: impl Into<String>, actual: usize, most: usize) -> Self {
        let unit = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {unit}");
        Self { problem: Problem::TooMany, field: field.into(), value: Some(actual.into()), detail }
    }

    /// The message without the field, as a cause shows it.
    pub fn body(&self) -> String {
        let words = self.problem.words();
        let value = match (self.problem, &self.value) {
            (Problem::Required | Problem::Forbidden | Problem::TooLong | Problem::Internal, _) | (_, None) => None,
            (_, Some(value)) => Some(value.to_string()),
        };
        let mut text = words.to_owned();
        if let Some(value) = value {
            text = format!("{text}: {value}");
        }
        if !self.detail.is_empty() {
            text = format!("{text}: {}", self.detail);
        }
        text
    }

    pub fn cause(&self) -> Cause {
        Cause { reason: self.problem.reason().into(), message: self.body(), field: self.field.clone() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}
