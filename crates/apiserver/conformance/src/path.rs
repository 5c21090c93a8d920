// SPDX-License-Identifier: Apache-2.0
//! Places in an answer: `.metadata.name`, `.items[0]`, `.conditions[type=Ready].status`, `.paths["a/b"]`, `.items[*]`.

use serde_json::Value;

#[derive(Debug, PartialEq, Eq)]
enum Segment<'a> {
    Key(&'a str),
    Index(usize),
    /// The items with this value in a field.
    Where(&'a str, &'a str),
    All,
}

/// The values at a place; several where it says `[*]`.
pub fn find<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![value];
    for segment in segments(path) {
        found = found.into_iter().flat_map(|value| step(value, &segment)).collect();
    }
    found
}

/// Removes what is at a place.
pub fn remove(value: &mut Value, path: &str) {
    remove_at(value, &segments(path));
}

fn remove_at(value: &mut Value, segments: &[Segment<'_>]) {
    let Some((first, rest)) = segments.split_first() else { return };
    if rest.is_empty() {
        match (first, value) {
            (Segment::Key(key), Value::Object(fields)) => drop(fields.remove(*key)),
            (Segment::Index(index), Value::Array(items)) if *index < items.len() => drop(items.remove(*index)),
            (Segment::Where(field, wanted), Value::Array(items)) => items.retain(|item| !is(item, field, wanted)),
            (Segment::All, Value::Array(items)) => items.clear(),
            _ => {}
        }
        return;
    }
    match (first, value) {
        (Segment::Key(key), Value::Object(fields)) => {
            fields.get_mut(*key).into_iter().for_each(|value| remove_at(value, rest));
        }
        (Segment::Index(index), Value::Array(items)) => {
            items.get_mut(*index).into_iter().for_each(|value| remove_at(value, rest));
        }
        (Segment::Where(field, wanted), Value::Array(items)) => {
            items.iter_mut().filter(|item| is(item, field, wanted)).for_each(|value| remove_at(value, rest));
        }
        (Segment::All, Value::Array(items)) => items.iter_mut().for_each(|value| remove_at(value, rest)),
        (Segment::All, Value::Object(fields)) => fields.values_mut().for_each(|value| remove_at(value, rest)),
        _ => {}
    }
}

fn step<'a>(value: &'a Value, segment: &Segment<'_>) -> Vec<&'a Value> {
    match (segment, value) {
        (Segment::Key(key), Value::Object(fields)) => fields.get(*key).into_iter().collect(),
        (Segment::Index(index), Value::Array(items)) => items.get(*index).into_iter().collect(),
        (Segment::Where(field, wanted), Value::Array(items)) => {
            items.iter().filter(|item| is(item, field, wanted)).collect()
        }
        (Segment::All, Value::Array(items)) => items.iter().collect(),
        (Segment::All, Value::Object(fields)) => fields.values().collect(),
        _ => Vec::new(),
    }
}

fn is(item: &Value, field: &str, wanted: &str) -> bool {
    find(item, &format!(".{field}")).iter().any(|value| value.as_str() == Some(wanted))
}

fn segments(path: &str) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (segment, tail) = if let Some(inner) = rest.strip_prefix('[') {
            let (inner, tail) = inner.split_once(']').unwrap_or((inner, ""));
            (bracket(inner), tail)
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let (name, tail) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
            (Segment::Key(name), tail)
        };
        if segment != Segment::Key("") {
            segments.push(segment);
        }
        rest = tail;
    }
    segments
}

fn bracket(inner: &str) -> Segment<'_> {
    match (inner, inner.parse(), inner.split_once('=')) {
        ("*", ..) => Segment::All,
        (_, Ok(index), _) => Segment::Index(index),
        _ if inner.starts_with('"') => Segment::Key(inner.trim_matches('"')),
        (_, _, Some((field, value))) => Segment::Where(field, value),
        _ => Segment::Key(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::{find, remove};
    use serde_json::json;

    #[test]
    fn places_are_found_and_removed() {
        let mut value = json!({ "a": [{ "n": "x", "v": 1 }, { "n": "y", "v": 2 }], "b/c": { "d": 3 } });
        assert_eq!(find(&value, ".a[1].v"), [&json!(2)]);
        assert_eq!(find(&value, ".a[n=x].v"), [&json!(1)]);
        assert_eq!(find(&value, ".a[*].v"), [&json!(1), &json!(2)]);
        assert_eq!(find(&value, ".[\"b/c\"].d"), [&json!(3)]);
        assert!(find(&value, ".a.v").is_empty() && find(&value, ".a[7]").is_empty());
        remove(&mut value, ".a[*].v");
        remove(&mut value, ".[\"b/c\"]");
        assert_eq!(value, json!({ "a": [{ "n": "x" }, { "n": "y" }] }));
    }
}
