// SPDX-License-Identifier: Apache-2.0
//! A sequence as the text of a case, to be put among the others.

use std::fmt::Write as _;

use serde_json::Value;

use crate::case::{Case, Step};
use crate::path;
use crate::play::Record;

/// With what the real server answered, where it is known. JSON is YAML.
pub fn yaml(case: &Case, answers: &[Record]) -> String {
    let mut text = format!("name: {}\n", case.name);
    if let Some(crd) = &case.crd {
        let _ = writeln!(text, "crd: {crd}");
    }
    text += "steps:\n";
    for (index, step) in case.steps.iter().enumerate() {
        let _ = writeln!(text, "  - do: {}", Value::from(step.request.as_deref().unwrap_or_default()));
        if let Some(body) = &step.body {
            let _ = writeln!(text, "    body: {body}");
        }
        if let Some(answer) = answers.get(index) {
            let later = case.steps.get(index + 1..).unwrap_or_default();
            text += &outcome(step, answer, later);
        }
    }
    text
}

/// What is saved and used, and the code of a refusal.
fn outcome(step: &Step, answer: &Record, later: &[Step]) -> String {
    let mut text = String::new();
    let uses = |step: &Step, name: &str| step.body.as_ref().is_some_and(|body| body.to_string().contains(name));
    let used = |name: &str| later.iter().any(|step| uses(step, &format!("{{{name}}}")));
    let saved = step.save.iter().filter(|(name, place)| used(name) && !path::find(&answer.body, place).is_empty());
    let saved: Vec<_> = saved.map(|(name, place)| format!("{name}: {place}")).collect();
    if !saved.is_empty() {
        let _ = writeln!(text, "    save: {{ {} }}", saved.join(", "));
    }
    if answer.status >= 300 {
        let _ = writeln!(text, "    want: {}", answer.status);
    }
    text
}
