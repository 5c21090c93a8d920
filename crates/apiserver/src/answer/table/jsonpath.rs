// SPDX-License-Identifier: Apache-2.0
//! The part of JSONPath that printer columns use: names, indices, `[*]` and `[?(@.type=="Ready")]`.

use serde_json::Value;

/// What a path finds, in order. A path that cannot be read finds nothing.
pub fn find<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    steps(path).map_or_else(Vec::new, |steps| {
        let mut found = vec![value];
        for step in &steps {
            found = found.into_iter().flat_map(|value| step.take(value)).collect();
        }
        found
    })
}

enum Step {
    Name(String),
    Index(i64),
    All,
    /// Items whose field at a path has a value.
    Filter {
        path: String,
        equal: bool,
        value: Value,
    },
}

impl Step {
    fn take<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Name(name), Value::Object(map)) => map.get(name).into_iter().collect(),
            (Self::Index(index), Value::Array(list)) => {
                let at = if *index < 0 {
                    list.len().checked_sub(index.unsigned_abs() as usize)
                } else {
                    usize::try_from(*index).ok()
                };
                at.and_then(|at| list.get(at)).into_iter().collect()
            }
            (Self::All, Value::Array(list)) => list.iter().collect(),
            (Self::All, Value::Object(map)) => map.values().collect(),
            (Self::Filter { path, equal, value }, Value::Array(list)) => {
                list.iter().filter(|item| (find(item, path).first() == Some(&value)) == *equal).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = name_end(after);
            let (name, left) = after.split_at(end);
            if name == "*" {
                steps.push(Step::All);
            } else if !name.is_empty() {
                steps.push(Step::Name(name.replace("\\.", ".")));
            }
            rest = left;
        } else {
            let inner = rest.strip_prefix('[')?;
            let end = bracket_end(inner)?;
            let (inner, left) = inner.split_at(end);
            steps.push(bracket(inner.trim())?);
            rest = left.strip_prefix(']')?;
        }
    }
    Some(steps)
}

/// Where a name ends: at a dot or a bracket that is not escaped.
fn name_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '.' | '[' => return at,
            _ => {}
        }
    }
    text.len()
}

fn bracket_end(text: &str) -> Option<usize> {
    let (mut quote, mut depth) = (None, 0);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Step> {
    if inner == "*" {
        return Some(Step::All);
    }
    if let Some(condition) = inner.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        let (left, equal, right) = match condition.split_once("!=") {
            Some((left, right)) => (left, false, right),
            None => {
                let (left, right) = condition.split_once("==")?;
                (left, true, right)
            }
        };
        let path = left.trim().strip_prefix('@')?.to_owned();
        return Some(Step::Filter { path, equal, value: literal(right.trim())? });
    }
    if let Some(name) = quoted(inner) {
        return Some(Step::Name(name.to_owned()));
    }
    inner.parse().ok().map(Step::Index)
}

fn literal(text: &str) -> Option<Value> {
    quoted(text).map(Value::from).or_else(|| serde_json::from_str(text).ok())
}

fn quoted(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_of_columns() {
        let object = json!({
            "spec": { "beds": 2, "names": ["a", "b"] },
            "metadata": { "labels": { "a.b/c": "x" } },
            "status": { "conditions": [{ "type": "Old", "status": "False" }, { "type": "Ready", "status": "True" }] },
        });
        let text = |path: &str| json!(find(&object, path)).to_string();
        assert_eq!(text(".spec.beds"), "[2]");
        assert_eq!(text(".spec.names[*]"), r#"["a","b"]"#);
        assert_eq!(text(".spec.names[1]"), r#"["b"]"#);
        assert_eq!(text(".status.conditions[?(@.type==\"Ready\")].status"), r#"["True"]"#);
        assert_eq!(text(".metadata.labels['a.b/c']"), r#"["x"]"#);
        assert_eq!(text(".metadata.labels.a\\.b/c"), r#"["x"]"#);
        assert_eq!(text(".spec.none"), "[]");
        assert_eq!(text(".spec[oops"), "[]");
    }
}
