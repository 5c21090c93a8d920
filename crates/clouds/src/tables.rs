// SPDX-License-Identifier: Apache-2.0
//! What a cloud's codes and words mean, as data: each cloud folder has a `map.yaml`, so a code that is new needs no new
//! program.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::budget::Rates;
use crate::cloud::State;
use crate::fault::{Operation, Outcome};
use crate::wire::Reply;

/// The tables of one cloud.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    pub rates: Rates,
    /// Where an error answer has its code, as JSON pointers; the first that is there counts.
    #[serde(default)]
    code: Vec<String>,
    /// Where it has words for people.
    #[serde(default)]
    message: Vec<String>,
    /// The first that fits counts; behind them stands what the HTTP status alone says.
    #[serde(default)]
    errors: Vec<Rule>,
    /// The cloud's words for the states of a machine, in small letters.
    #[serde(default)]
    states: BTreeMap<String, State>,
}

/// All that is given must fit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    status: Vec<u16>,
    #[serde(default)]
    code: Vec<String>,
    /// One of them is in the message, in any case.
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    on: Vec<Operation>,
    outcome: Named,
}

/// An outcome as the file writes it.
#[derive(Clone, Copy, Debug, Deserialize)]
enum Named {
    NotFound,
    NoCapacity,
    Quota,
    Unauthorized,
    Payment,
    RateLimited,
    Invalid,
    Conflict,
    Transient,
    Ambiguous,
}

// === impl Tables ===

impl Tables {
    /// Reads a `map.yaml`. It is part of the program, and a test reads every one of them.
    pub fn parse(text: &str) -> Result<Self, serde_saphyr::Error> {
        serde_saphyr::from_str(text)
    }

    fn none() -> Self {
        let rates = Rates { every_ms: 1000, burst: 1, launch_every_ms: 0 };
        Self { rates, code: Vec::new(), message: Vec::new(), errors: Vec::new(), states: BTreeMap::new() }
    }

    /// What a refusal means, and what it says.
    pub fn read(&self, operation: Operation, reply: &Reply) -> (Outcome, String) {
        let body = reply.json();
        let code = self.find(&self.code, body.as_ref()).unwrap_or_default();
        let says = self.find(&self.message, body.as_ref()).unwrap_or_else(|| plain(reply));
        let status = reply.status.as_u16();
        let rule = self.errors.iter().find(|rule| rule.fits(operation, status, &code, &says));
        let outcome = match rule {
            Some(rule) => rule.outcome.with(reply),
            None => by_status(operation, reply),
        };
        let retired = status == 410 && rule.is_none();
        (outcome, if retired { format!("this API is retired. {says}") } else { says })
    }

    /// The same for an error that came in an answer that looks like success.
    pub fn read_code(&self, operation: Operation, code: &str, says: &str) -> Option<Outcome> {
        let rule = self.errors.iter().find(|rule| rule.status.is_empty() && rule.fits(operation, 200, code, says))?;
        Some(rule.outcome.plain())
    }

    pub fn state(&self, word: &str) -> State {
        self.states.get(&word.to_ascii_lowercase()).copied().unwrap_or(State::Unknown)
    }

    fn find(&self, pointers: &[String], body: Option<&Value>) -> Option<String> {
        pointers.iter().filter_map(|pointer| body?.pointer(pointer)).find_map(|value| match value {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Array(_) | Value::Object(_) => Some(value.to_string()),
            _ => None,
        })
    }
}

// === impl Rule ===

impl Rule {
    fn fits(&self, operation: Operation, status: u16, code: &str, says: &str) -> bool {
        let says = says.to_ascii_lowercase();
        (self.on.is_empty() || self.on.contains(&operation))
            && (self.status.is_empty() || self.status.contains(&status))
            && (self.code.is_empty() || self.code.iter().any(|one| one.eq_ignore_ascii_case(code)))
            && (self.words.is_empty() || self.words.iter().any(|words| says.contains(&words.to_ascii_lowercase())))
    }
}

// === impl Named ===

impl Named {
    fn plain(self) -> Outcome {
        match self {
            Self::NotFound => Outcome::NotFound,
            Self::NoCapacity => Outcome::NoCapacity,
            Self::Quota => Outcome::Quota,
            Self::Unauthorized => Outcome::Unauthorized,
            Self::Payment => Outcome::Payment,
            Self::RateLimited => Outcome::RateLimited { after: None },
            Self::Invalid => Outcome::Invalid,
            Self::Conflict => Outcome::Conflict,
            Self::Transient => Outcome::Transient,
            Self::Ambiguous => Outcome::Ambiguous,
        }
    }

    fn with(self, reply: &Reply) -> Outcome {
        match self.plain() {
            Outcome::RateLimited { .. } => Outcome::RateLimited { after: crate::budget::pause(reply) },
            other => other,
        }
    }
}

fn by_status(operation: Operation, reply: &Reply) -> Outcome {
    match reply.status.as_u16() {
        401 | 403 => Outcome::Unauthorized,
        402 => Outcome::Payment,
        // What is to be bought is not sold; that does not mean that something of ours is gone.
        404 if operation.spends() => Outcome::Invalid,
        404 => Outcome::NotFound,
        408 | 500..=599 if operation.spends() => Outcome::Ambiguous,
        408 | 500..=599 => Outcome::Transient,
        409 => Outcome::Conflict,
        429 => Outcome::RateLimited { after: crate::budget::pause(reply) },
        _ => Outcome::Invalid,
    }
}

/// What can be shown of a body in which nothing was found.
fn plain(reply: &Reply) -> String {
    let text = String::from_utf8_lossy(&reply.body);
    let text = text.trim();
    match text.get(..1) {
        None => String::new(),
        Some("<") => "an HTML page instead of an answer".to_owned(),
        Some(_) => text.to_owned(),
    }
}

/// Tables that are part of the program. A file that cannot be read has no rules; a test reads them all.
pub fn built_in(cloud: &str, text: &str) -> Tables {
    Tables::parse(text).unwrap_or_else(|_| {
        debug_assert!(false, "the tables of {cloud} cannot be read");
        Tables::none()
    })
}
