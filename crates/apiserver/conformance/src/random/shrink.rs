// SPDX-License-Identifier: Apache-2.0
//! Makes a sequence smaller as long as the two servers still differ.

use kube::Client;
use serde_json::Value;

use crate::case::Case;
use crate::compare::{Declared, differences, signature};
use crate::play::{Transcript, play};

/// Small enough to read; each try is a few requests to the real server.
const TRIES: usize = 250;

/// The smallest sequence found, what the real server said to it, and how ours differs.
#[derive(Debug)]
pub struct Smallest {
    pub case: Case,
    pub real: Transcript,
    /// See [`signature`].
    pub kind: String,
    pub texts: Vec<String>,
}

/// `None` when both servers agree this time.
pub async fn shrink(real: &Client, ours: &Client, declared: &[Declared], case: &Case) -> Option<Smallest> {
    let mut search = Search { real, ours, declared, tries: 0 };
    let mut best = search.attempt(case.clone()).await?;
    loop {
        let mut smaller = None;
        for candidate in candidates(&best.case) {
            if search.tries >= TRIES {
                break;
            }
            // Another difference would lead away from this one.
            smaller = search.attempt(candidate).await.filter(|found| found.kind == best.kind);
            if smaller.is_some() {
                break;
            }
        }
        match smaller {
            Some(smaller) => best = smaller,
            None => return Some(best),
        }
    }
}

struct Search<'a> {
    real: &'a Client,
    ours: &'a Client,
    declared: &'a [Declared],
    tries: usize,
}

impl Search<'_> {
    async fn attempt(&mut self, mut case: Case) -> Option<Smallest> {
        self.tries += 1;
        let name = case.name.clone();
        // A place of its own, as everything before is still there.
        case.name = format!("{name} try {}", self.tries);
        let (said, got) = tokio::join!(play(self.real, &case), play(self.ours, &case));
        case.name = name;
        let texts = differences(&said, &got, self.declared);
        // What comes after the first difference follows from it.
        let same = said.records.iter().zip(&got.records).take_while(|(said, got)| said == got).count();
        case.steps.truncate(same + 1);
        let kind = signature(&said, &got);
        (!texts.is_empty()).then_some(Smallest { case, real: said, kind, texts: texts.into_iter().take(1).collect() })
    }
}

/// Without one step, from the last; then without one part of a body, the largest first.
fn candidates(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for index in (0..case.steps.len()).rev() {
        let mut smaller = case.clone();
        smaller.steps.remove(index);
        if !smaller.steps.is_empty() {
            found.push(smaller);
        }
    }
    let mut parts = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        let mut paths = Vec::new();
        step.body.iter().for_each(|body| places(body, "", &mut paths));
        parts.extend(paths.into_iter().map(|(place, size)| (size, index, place)));
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.0));
    for (_, index, place) in parts {
        let mut smaller = case.clone();
        if let Some(body) = smaller.steps.get_mut(index).and_then(|step| step.body.as_mut()) {
            remove(body, &place);
        }
        found.push(smaller);
    }
    found
}

/// The pointers of all parts of a body that may go, and how large they are.
fn places(value: &Value, path: &str, found: &mut Vec<(String, usize)>) {
    let mut part = |name: String, value: &Value| {
        let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        if !["/apiVersion", "/kind", "/metadata", "/metadata/name"].contains(&path.as_str()) {
            found.push((path.clone(), value.to_string().len()));
        }
        places(value, &path, found);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| part(name.clone(), value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, value)| part(index.to_string(), value)),
        _ => {}
    }
}

fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    match value.pointer_mut(parent) {
        Some(Value::Object(fields)) => drop(fields.remove(&name.replace("~1", "/").replace("~0", "~"))),
        Some(Value::Array(items)) => {
            if let Some(index) = name.parse().ok().filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{places, remove};
    use serde_json::json;

    #[test]
    fn every_part_of_a_body_can_go() {
        let body =
            json!({ "kind": "K", "metadata": { "name": "a", "labels": { "x/y": "z" } }, "l": [1, { "a~b": 2 }] });
        let mut found = Vec::new();
        places(&body, "", &mut found);
        let mut paths: Vec<_> = found.into_iter().map(|(path, _)| path).collect();
        paths.sort();
        assert_eq!(paths, ["/l", "/l/0", "/l/1", "/l/1/a~0b", "/metadata/labels", "/metadata/labels/x~1y"]);
        for path in paths {
            let mut smaller = body.clone();
            remove(&mut smaller, &path);
            assert_ne!(smaller, body, "{path}");
        }
    }
}
