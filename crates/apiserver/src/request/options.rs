// SPDX-License-Identifier: Apache-2.0
//! The query of a request, read once.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::selector::{FieldSelector, LabelSelector};
use crate::{field, status::Status};

/// Everything a query can say. What a verb does not know it does not look at, as in the real server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub watch: bool,
    pub limit: Option<u64>,
    pub continue_token: Option<String>,
    pub resource_version: Option<String>,
    pub resource_version_match: Option<String>,
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    pub allow_watch_bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub timeout_seconds: Option<u64>,
    pub field_manager: Option<String>,
    pub field_validation: Option<String>,
    pub dry_run: Vec<String>,
    pub force: Option<bool>,
    pub propagation_policy: Option<String>,
    pub grace_period_seconds: Option<i64>,
    pub orphan_dependents: Option<bool>,
    pub container: Option<String>,
    pub follow: bool,
    pub tail_lines: Option<u64>,
    pub include_object: Option<String>,
}

/// What comes with each row of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Include {
    #[default]
    Metadata,
    Object,
    Nothing,
}

/// What happens with fields that a kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl Options {
    pub fn parse(query: Option<&str>) -> Result<Self, Status> {
        let mut options = Self::default();
        for (key, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            options.set(&key, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: Cow<'_, str>) -> Result<(), Status> {
        let text = |value: Cow<'_, str>| Some(value.into_owned()).filter(|text| !text.is_empty());
        match key {
            "watch" => self.watch = boolean(&value),
            "allowWatchBookmarks" => self.allow_watch_bookmarks = boolean(&value),
            "follow" => self.follow = boolean(&value),
            "force" => self.force = Some(boolean(&value)),
            "orphanDependents" => self.orphan_dependents = Some(boolean(&value)),
            "sendInitialEvents" => self.send_initial_events = Some(boolean(&value)),
            "limit" => self.limit = u64::try_from(integer(&value)?).ok().filter(|limit| *limit > 0),
            "timeoutSeconds" => self.timeout_seconds = u64::try_from(integer(&value)?).ok().filter(|time| *time > 0),
            "gracePeriodSeconds" => self.grace_period_seconds = Some(integer(&value)?),
            "tailLines" => self.tail_lines = u64::try_from(integer(&value)?).ok(),
            "continue" => self.continue_token = text(value),
            "resourceVersion" => self.resource_version = text(value),
            "resourceVersionMatch" => self.resource_version_match = text(value),
            "labelSelector" => self.labels = LabelSelector::parse(&value).map_err(Status::bad_request)?,
            "fieldSelector" => self.fields = FieldSelector::parse(&value).map_err(Status::bad_request)?,
            "fieldManager" => self.field_manager = text(value),
            "fieldValidation" => self.field_validation = text(value),
            "dryRun" => self.dry_run.extend(text(value)),
            "propagationPolicy" => self.propagation_policy = text(value),
            "container" => self.container = text(value),
            "includeObject" => self.include_object = text(value),
            _ => {}
        }
        Ok(())
    }

    /// What the rows of a table come with.
    pub fn include(&self) -> Result<Include, Status> {
        match self.include_object.as_deref() {
            None | Some("Metadata") => Ok(Include::Metadata),
            Some("Object") => Ok(Include::Object),
            Some("None") => Ok(Include::Nothing),
            Some(other) => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }

    pub fn is_dry_run(&self) -> bool {
        !self.dry_run.is_empty()
    }

    pub fn field_validation(&self) -> FieldValidation {
        match self.field_validation.as_deref() {
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") if !fault!(StrictLenient) => FieldValidation::Strict,
            _ => FieldValidation::Warn,
        }
    }

    /// Refuses options of writes that are not acceptable. `kind` is the Go name of the options: `CreateOptions`.
    pub fn check_write(&self, kind: &str) -> Result<(), Status> {
        let mut errors = Vec::new();
        if let Some(manager) = &self.field_manager {
            errors.extend(check_manager(manager));
        }
        errors.extend(check_dry_run(&self.dry_run));
        if let Some(validation) = self.field_validation.as_deref()
            && !["Ignore", "Warn", "Strict"].contains(&validation)
        {
            errors.push(field::Error::not_supported("fieldValidation", validation, &["", "Ignore", "Strict", "Warn"]));
        }
        refuse(kind, &errors)
    }
}

/// An invalid-options answer when there is anything to say.
pub fn refuse(kind: &str, errors: &[field::Error]) -> Result<(), Status> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", kind, "", errors)) }
}

pub fn check_dry_run(dry_run: &[String]) -> Option<field::Error> {
    (!dry_run.is_empty() && dry_run.iter().any(|value| value != "All"))
        .then(|| field::Error::not_supported("dryRun", json!(dry_run), &["All"]))
}

fn check_manager(manager: &str) -> Option<field::Error> {
    const MOST: usize = 128;
    if manager.len() > MOST {
        let mut error = field::Error::too_long("fieldManager", MOST);
        error.value = Some(Value::from(manager));
        return Some(error);
    }
    let strange = manager.chars().any(|c| c.is_control() || !is_printable(c));
    strange.then(|| field::Error::invalid("fieldManager", manager, "should only contain printable characters"))
}

fn is_printable(c: char) -> bool {
    c == ' ' || (!c.is_whitespace() && !c.is_control())
}

/// As the real server reads booleans of a query: everything but `false` and `0` is true, even nothing.
fn boolean(text: &str) -> bool {
    !matches!(text.to_ascii_lowercase().as_str(), "false" | "0")
}

fn integer(text: &str) -> Result<i64, Status> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))
}
