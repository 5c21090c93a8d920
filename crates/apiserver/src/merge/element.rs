// SPDX-License-Identifier: Apache-2.0
//! One step of a field path: its order, its text in messages and its text in `fieldsV1`.

use std::{borrow::Cow, cmp::Ordering, fmt};

use serde_json::Value;

use super::wording;

/// How to get from a value to something inside it. Names and values are borrowed from the objects where possible: sets of
/// paths live only as long as one request.
#[derive(Debug, Clone)]
pub enum PathElement<'a> {
    /// The field of an object.
    Field(Cow<'a, str>),
    /// The item of a list whose key fields have these values, sorted by name.
    Key(Vec<(Cow<'a, str>, Cow<'a, Value>)>),
    /// The item of a set with this value.
    Value(Cow<'a, Value>),
    /// The item of an atomic list, by its place.
    Index(i64),
}

/// Why a key of `fieldsV1` is not a path element.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadElement {
    #[error("key must be 2 characters long:")]
    Short,
    #[error("missing colon: {0}")]
    Colon(String),
    #[error("{0}")]
    Content(String),
}

// === impl PathElement ===

impl<'a> PathElement<'a> {
    pub fn field(name: &'a str) -> Self {
        Self::Field(Cow::Borrowed(name))
    }

    /// Reads a key of `fieldsV1`. A prefix that nobody knows is `None`: a newer server may have written it.
    pub fn decode(key: &'a str) -> Result<Option<Self>, BadElement> {
        let (Some(prefix), Some(content)) = (key.get(..2), key.get(2..)) else { return Err(BadElement::Short) };
        let bad = |error: &dyn fmt::Display| BadElement::Content(error.to_string());
        Ok(Some(match prefix {
            "f:" => Self::field(content),
            "v:" => Self::Value(Cow::Owned(serde_json::from_str(content).map_err(|e| bad(&e))?)),
            "i:" => Self::Index(content.parse().map_err(|e| bad(&e))?),
            "k:" => {
                let fields: serde_json::Map<String, Value> = serde_json::from_str(content).map_err(|e| bad(&e))?;
                Self::Key(fields.into_iter().map(|(name, value)| (Cow::Owned(name), Cow::Owned(value))).collect())
            }
            other if other.ends_with(':') => return Ok(None),
            _ => return Err(BadElement::Colon(key.to_owned())),
        }))
    }

    /// The key of `fieldsV1` for this element.
    pub fn encode(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Value(value) => ["v:", &wording::json(value)].concat(),
            Self::Index(index) => format!("i:{index}"),
            Self::Key(fields) => {
                let mut text = String::from("k:{");
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    text.extend([comma, &wording::json_text(name), ":", &wording::json(value)]);
                }
                text.push('}');
                text
            }
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// As messages print it: `.spec`, `[name="web"]`, `[="finalizer"]`, `[0]`.
impl fmt::Display for PathElement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Value(value) => write!(f, "[={}]", wording::readable(value)),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={}", wording::readable(value))?;
                }
                f.write_str("]")
            }
        }
    }
}

impl Ord for PathElement<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => {
                let pairs = a.iter().zip(b);
                let mut differing = pairs.map(|((an, av), (bn, bv))| an.cmp(bn).then_with(|| order(av, bv)));
                differing.find(|o| o.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Self::Value(a), Self::Value(b)) => order(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement<'_> {}

/// A total order of JSON values. Numbers are compared as numbers, so `1` and `1.0` are the same value, as they are for
/// the real server.
pub fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)),
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let mut differing = a.iter().zip(b).map(|(a, b)| order(a, b));
            differing.find(|o| o.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let mut differing = a.iter().zip(b).map(|((ak, av), (bk, bv))| ak.cmp(bk).then_with(|| order(av, bv)));
            differing.find(|o| o.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => value_rank(a).cmp(&value_rank(b)),
    }
}

fn value_rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Whether two values are the same to the real server.
pub fn same(a: &Value, b: &Value) -> bool {
    order(a, b).is_eq()
}
