// SPDX-License-Identifier: Apache-2.0
//! How a cloud's answers look, from a file: refusals, words for states, and bodies with holes to fill.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Answer;
use super::economy::{Good, Phase, Refused};

/// The shapes of one cloud.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shapes {
    /// The sections of the specification that these shapes are from.
    pub spec: Vec<String>,
    /// What is for sale in the beginning.
    pub goods: Vec<Good>,
    refusals: BTreeMap<Refused, Refusal>,
    words: BTreeMap<Phase, String>,
    /// Bodies by name. A text that is `$name` is filled in.
    #[serde(default)]
    bodies: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Value,
}

// === impl Shapes ===

impl Shapes {
    pub fn parse(text: &str) -> Result<Self, serde_saphyr::Error> {
        serde_saphyr::from_str(text)
    }

    /// A cloud that has no shape of its own for a refusal answers with the bare status.
    pub fn refusal(&self, refused: Refused) -> Answer {
        let Some(shape) = self.refusals.get(&refused) else { return Answer::empty(bare(refused)) };
        let answer = match &shape.body {
            Value::Null => Answer::empty(shape.status),
            Value::String(text) => Answer { body: text.clone().into_bytes().into(), ..Answer::empty(shape.status) },
            body => Answer::json(shape.status, body),
        };
        shape.headers.iter().fold(answer, |answer, (name, value)| answer.with_header(name, value))
    }

    pub fn word(&self, phase: Phase) -> &str {
        self.words.get(&phase).map_or("", String::as_str)
    }

    /// A body with its holes filled; a hole that nobody fills becomes null.
    pub fn body(&self, name: &str, fill: &BTreeMap<&str, Value>) -> Value {
        let mut body = self.bodies.get(name).cloned().unwrap_or_default();
        filled(&mut body, fill);
        body
    }
}

fn filled(value: &mut Value, fill: &BTreeMap<&str, Value>) {
    match value {
        Value::String(text) => {
            if let Some(name) = text.strip_prefix('$') {
                *value = fill.get(name).cloned().unwrap_or_default();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|one| filled(one, fill)),
        Value::Object(map) => map.values_mut().for_each(|one| filled(one, fill)),
        _ => {}
    }
}

fn bare(refused: Refused) -> u16 {
    match refused {
        Refused::Unauthorized => 401,
        Refused::Payment => 402,
        Refused::Forbidden | Refused::Quota => 403,
        Refused::NotFound => 404,
        Refused::Conflict => 409,
        Refused::Retired => 410,
        Refused::Invalid | Refused::NoCapacity => 422,
        Refused::RateLimited => 429,
        Refused::Broken => 500,
    }
}
