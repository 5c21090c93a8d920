// SPDX-License-Identifier: Apache-2.0
//! What differs, and whether it may.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::TextDiff;

use crate::case::documents;
use crate::play::{Record, Transcript};

/// A difference that we know and accept.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// The case, where `*` stands for anything.
    pub case: String,
    /// The number of the step; all of them when it is left out.
    pub step: Option<usize>,
    /// The places of the record, like `.body.message`, where `*` stands for anything.
    pub paths: Vec<String>,
    pub reason: String,
}

/// The keys of `cargo xtask conformance --json`.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub cases: usize,
    /// How many differences are declared.
    pub declared: usize,
    /// How many cases differ in another way.
    pub undeclared: usize,
    pub sequences: usize,
    /// The cases that differ in another way.
    #[serde(skip)]
    pub different: Vec<String>,
    /// For people.
    #[serde(skip)]
    pub texts: Vec<String>,
}

impl Declared {
    pub fn load(file: &Path) -> Result<Vec<Self>> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let mut lists: Vec<Option<Vec<Self>>> = documents(&text)?;
        Ok(lists.pop().flatten().unwrap_or_default())
    }

    fn allows(&self, case: &str, step: usize, path: &str) -> bool {
        let right_step = self.step.is_none_or(|wanted| wanted == step);
        right_step && like(&self.case, case) && self.paths.iter().any(|pattern| like(pattern, path))
    }
}

/// Compares what both servers said. The transcripts are of the same cases in the same order.
pub fn compare(real: &[Transcript], ours: &[Transcript], declared: &[Declared]) -> Report {
    let mut report = Report { cases: real.len(), declared: declared.len(), ..Report::default() };
    for (real, ours) in real.iter().zip(ours) {
        let texts = differences(real, ours, declared);
        if !texts.is_empty() {
            report.different.push(real.id.clone());
        }
        report.texts.extend(texts);
    }
    report.undeclared = report.different.len();
    report
}

/// Texts for people; none where both said the same.
pub fn differences(real: &Transcript, ours: &Transcript, declared: &[Declared]) -> Vec<String> {
    let mut texts = Vec::new();
    for step in 0..real.records.len().max(ours.records.len()) {
        let (Some(wanted), Some(got)) = (real.records.get(step), ours.records.get(step)) else {
            let why = ours.broken.as_deref().or(real.broken.as_deref()).unwrap_or("it ended early");
            texts.push(format!("{} step {}: {why}", real.id, step + 1));
            break;
        };
        let mut places = Vec::new();
        let values = (serde_json::to_value(wanted).unwrap_or_default(), serde_json::to_value(got).unwrap_or_default());
        collect("", &values.0, &values.1, &mut places);
        places.retain(|place| !declared.iter().any(|one| one.allows(&real.id, step + 1, place)));
        if !places.is_empty() {
            texts.push(explain(&real.id, step + 1, wanted, got));
        }
    }
    texts
}

/// The kind of the first difference: the same for differences that likely have one cause.
pub fn signature(real: &Transcript, ours: &Transcript) -> String {
    let Some((wanted, got)) = real.records.iter().zip(&ours.records).find(|(wanted, got)| wanted != got) else {
        return String::new();
    };
    let mut places = Vec::new();
    collect("", &wanted.body, &got.body, &mut places);
    let method = wanted.request.split(' ').next().unwrap_or_default();
    let said = |record: &Record| record.body.get("message").and_then(Value::as_str).map(str::to_owned);
    let said = said(wanted).or_else(|| said(got)).unwrap_or_default();
    let said: String = said.chars().rev().filter(|c| c.is_alphabetic()).take(40).collect();
    let place = places.first().map_or("", String::as_str);
    format!("{method} {}/{} {} {said}", wanted.status, got.status, place.replace(|c: char| c.is_ascii_digit(), ""))
}

/// Where two values differ.
fn collect(path: &str, a: &Value, b: &Value, places: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for name in names {
                let path = format!("{path}.{name}");
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => collect(&path, a, b, places),
                    _ => places.push(path),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                collect(&format!("{path}[{index}]"), a, b, places);
            }
        }
        _ if a == b => {}
        _ => places.push(path.to_owned()),
    }
}

fn explain(id: &str, step: usize, real: &Record, ours: &Record) -> String {
    let (real_text, ours_text) = (show(real), show(ours));
    let diff = TextDiff::from_lines(&real_text, &ours_text);
    let diff = diff.unified_diff().context_radius(2).header("real", "ours").to_string();
    format!("{id} step {step}: {}\n{diff}", real.request)
}

/// A record for people.
pub fn show(record: &Record) -> String {
    serde_json::to_string_pretty(record).unwrap_or_default() + "\n"
}

/// Whether a text is like a pattern, where `*` stands for anything.
fn like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|tail| {
            rest.is_empty() || (0..=tail.len()).any(|at| tail.get(at..).is_some_and(|tail| like(rest, tail)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Declared, compare, like};
    use crate::play::{Record, Transcript};
    use serde_json::{Value, json};

    fn transcript(bodies: &[Value]) -> Transcript {
        let record = |body: &Value| Record {
            request: "GET /".to_owned(),
            status: 200,
            content_type: String::new(),
            warnings: Vec::new(),
            body: body.clone(),
            surprise: None,
        };
        Transcript { id: "area/case".to_owned(), records: bodies.iter().map(record).collect(), broken: None }
    }

    fn declared(step: Option<usize>, path: &str) -> Declared {
        Declared { case: "area/*".to_owned(), step, paths: vec![path.to_owned()], reason: String::new() }
    }

    #[test]
    fn a_difference_is_shown_with_its_step() {
        let (real, ours) =
            (transcript(&[json!({ "a": 1 }), json!({ "b": 1 })]), transcript(&[json!({ "a": 1 }), json!({ "b": 2 })]));
        let report = compare(&[real], &[ours], &[]);
        assert_eq!((report.cases, report.undeclared), (1, 1));
        let text = &report.texts[0];
        assert!(
            text.starts_with("area/case step 2: GET /")
                && text.contains("-    \"b\": 1")
                && text.contains("+    \"b\": 2"),
            "{text}"
        );
    }

    #[test]
    fn a_declared_difference_covers_its_place_and_no_other() {
        let (real, ours) = (transcript(&[json!({ "a": 1, "b": [1] })]), transcript(&[json!({ "a": 2, "b": [2] })]));
        let (real, ours) = ([real], [ours]);
        assert_eq!(compare(&real, &ours, &[declared(None, ".body.a")]).undeclared, 1);
        assert_eq!(compare(&real, &ours, &[declared(Some(2), ".body.*")]).undeclared, 1);
        let report = compare(&real, &ours, &[declared(Some(1), ".body.*")]);
        assert_eq!((report.undeclared, report.declared), (0, 1));
    }

    #[test]
    fn a_case_that_ends_early_differs() {
        let report = compare(&[transcript(&[json!(1), json!(2)])], &[transcript(&[json!(1)])], &[]);
        assert_eq!(report.undeclared, 1);
    }

    #[test]
    fn patterns_have_stars() {
        assert!(like("a*c", "abbc") && like("*", "") && like("a*b*c", "a1b2c"));
        assert!(!like("a*c", "abb") && !like("a", "ab"));
    }
}
