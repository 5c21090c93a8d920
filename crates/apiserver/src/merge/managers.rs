// SPDX-License-Identifier: Apache-2.0
//! `metadata.managedFields`: who wrote which fields, and when.

use std::borrow::Cow;

use jiff::{Timestamp, TimestampRound, Unit};
use serde_json::{Map, Value};

use super::{fields::Set, wording};

/// More managers than these by updates are too many: the oldest are merged.
const MAX_UPDATERS: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// How the fields came to their manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Apply,
    Update,
}

/// What tells managers apart. An applier stays the same over all versions of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity<'a> {
    pub manager: Cow<'a, str>,
    pub operation: Operation,
    /// Of updaters only.
    pub version: Cow<'a, str>,
    pub subresource: Cow<'a, str>,
}

/// One manager and its fields.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    pub id: Identity<'a>,
    /// The version of the API in which the fields are named.
    pub version: Cow<'a, str>,
    pub time: Option<Cow<'a, str>>,
    pub set: Set<'a>,
}

/// All managers of an object.
#[derive(Debug, Clone, Default)]
pub struct Managers<'a>(pub Vec<Entry<'a>>);

// === impl Identity ===

impl<'a> Identity<'a> {
    pub fn applier(manager: &'a str, subresource: &'a str) -> Self {
        Self {
            manager: Cow::Borrowed(manager),
            operation: Operation::Apply,
            version: Cow::Borrowed(""),
            subresource: Cow::Borrowed(subresource),
        }
    }

    pub fn updater(manager: &'a str, version: &'a str, subresource: &'a str) -> Self {
        Self {
            manager: Cow::Borrowed(if manager.is_empty() { "unknown" } else { manager }),
            operation: Operation::Update,
            version: Cow::Borrowed(version),
            subresource: Cow::Borrowed(subresource),
        }
    }

    /// The text by which the real server tells managers apart, and by which it sorts them.
    pub fn text(&self) -> String {
        let field = |name: &str, value: &str| match value {
            "" => String::new(),
            value => format!(",\"{name}\":{}", wording::json_text(value)),
        };
        let fields = [
            field("manager", &self.manager),
            field("operation", self.operation.as_str()),
            field("apiVersion", &self.version),
            field("subresource", &self.subresource),
        ];
        format!("{{{}}}", fields.concat().trim_start_matches(','))
    }

    /// As conflicts print it.
    pub fn readable(&self) -> String {
        let mut text = wording::quoted(&self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {}", wording::quoted(&self.subresource)));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.version));
        }
        text
    }
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

// === impl Managers ===

impl<'a> Managers<'a> {
    /// Reads the list. The error is the real server's sentence.
    pub fn decode(list: Option<&'a Value>) -> Result<Self, String> {
        let mut managers = Self::default();
        for (place, entry) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
            let entry = Entry::decode(entry, place)?;
            match managers.find(&entry.id) {
                Some(found) => *found = entry,
                None => managers.0.push(entry),
            }
        }
        Ok(managers)
    }

    /// Writes the list: appliers first, then by time, name, version and subresource.
    pub fn encode(mut self) -> Option<Value> {
        self.0.sort_by(|a, b| {
            (a.id.operation, &a.time, &a.id.manager, &a.version, &a.id.subresource).cmp(&(
                b.id.operation,
                &b.time,
                &b.id.manager,
                &b.version,
                &b.id.subresource,
            ))
        });
        (!self.0.is_empty()).then(|| self.0.iter().map(Entry::encode).collect())
    }

    pub fn find(&mut self, id: &Identity<'_>) -> Option<&mut Entry<'a>> {
        self.0.iter_mut().find(|entry| entry.id == *id)
    }

    pub fn take(&mut self, id: &Identity<'_>) -> Option<Entry<'a>> {
        let place = self.0.iter().position(|entry| entry.id == *id)?;
        Some(self.0.remove(place))
    }

    /// Merges the oldest updaters of each version into one until there are few enough.
    pub fn cap(&mut self) {
        let updaters = |entry: &&Entry<'_>| entry.id.operation == Operation::Update;
        let mut count = self.0.iter().filter(updaters).count();
        if count <= MAX_UPDATERS {
            return;
        }
        let mut oldest: Vec<_> =
            self.0.iter().filter(updaters).map(|e| (e.time.clone(), e.id.text(), e.id.clone())).collect();
        oldest.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        let mut first_of: Vec<(Cow<'_, str>, Identity<'_>)> = Vec::new();
        for (time, _, id) in oldest {
            if count <= MAX_UPDATERS {
                return;
            }
            let Some(version) = self.find(&id).map(|entry| entry.version.clone()) else { continue };
            let Some((_, first)) = first_of.iter().find(|(other, _)| *other == version).cloned() else {
                first_of.push((version, id));
                continue;
            };
            let bucket = Identity {
                manager: Cow::Borrowed(ANCIENT),
                operation: Operation::Update,
                version,
                subresource: Cow::Borrowed(""),
            };
            if self.find(&bucket).is_none()
                && let Some(entry) = self.find(&first)
            {
                entry.id = bucket.clone();
            }
            let Some(merged) = self.take(&id) else { continue };
            // The bucket itself may be what is merged; then its fields are lost, as they are on the real server.
            if let Some(entry) = self.find(&bucket) {
                entry.set.union(merged.set);
                entry.time = time;
            }
            count -= 1;
        }
    }
}

// === impl Entry ===

impl<'a> Entry<'a> {
    fn decode(entry: &'a Value, place: usize) -> Result<Self, String> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err("operation must be `Apply` or `Update`".to_owned()),
        };
        let version = text("apiVersion");
        if version.is_empty() {
            return Err("apiVersion must not be empty".to_owned());
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return Err(format!("missing fieldsType in managed fields entry {place}")),
            other => {
                return Err(format!("invalid fieldsType {} in managed fields entry {place}", wording::quoted(other)));
            }
        }
        let set = Set::decode(entry.get("fieldsV1").unwrap_or(&Value::Null));
        let set = set.map_err(|error| format!("error decoding set: {error}"))?;
        let id = Identity {
            manager: Cow::Borrowed(text("manager")),
            operation,
            version: Cow::Borrowed(if operation == Operation::Apply { "" } else { version }),
            subresource: Cow::Borrowed(text("subresource")),
        };
        Ok(Self { id, version: Cow::Borrowed(version), time: time(text("time")), set })
    }

    fn encode(&self) -> Value {
        let mut entry = Map::new();
        let mut field = |name: &str, value: &str| {
            if !value.is_empty() {
                entry.insert(name.to_owned(), Value::String(value.to_owned()));
            }
        };
        field("apiVersion", &self.version);
        field("fieldsType", "FieldsV1");
        field("manager", &self.id.manager);
        field("operation", self.id.operation.as_str());
        field("subresource", if fault!(SubresourceLost) { "" } else { &self.id.subresource });
        field("time", self.time.as_deref().unwrap_or_default());
        entry.insert("fieldsV1".to_owned(), self.set.encode());
        Value::Object(entry)
    }
}

/// Times are kept as `2006-01-02T15:04:05Z`, so that their order is the order of their texts.
fn time(text: &str) -> Option<Cow<'_, str>> {
    if text.is_empty() || (text.len() == 20 && text.ends_with('Z')) {
        return (!text.is_empty()).then_some(Cow::Borrowed(text));
    }
    let time: Timestamp = text.parse().ok()?;
    let seconds = TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor);
    Some(Cow::Owned(time.round(seconds).ok()?.to_string()))
}
