// SPDX-License-Identifier: Apache-2.0
//! JSON patch (RFC 6902), as lenient as the library of the real server: `replace` adds a field that is not there, `copy`
//! of such a field adds `null`, and indices count from the end when they are negative.

use serde_json::Value;

use super::PatchError;
use crate::decode::json_name;

/// More operations than these are too many.
const MAX_OPERATIONS: usize = 10_000;

/// Patches an object. `strict`: the request asks for a word about unknown fields (`fieldValidation` is not `Ignore`);
/// then the types of operations are checked first, in other words.
pub fn json(mut object: Value, patch: &Value, strict: bool) -> Result<Value, PatchError> {
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return Err(wrong_type(other, strict, "[]handlers.jsonPatchOp", "jsonpatch.Patch")),
    };
    for operation in operations {
        check(operation, strict)?;
    }
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    for operation in operations {
        apply(&mut object, operation).ok_or(PatchError::Rejected)?;
    }
    Ok(object)
}

fn check(operation: &Value, strict: bool) -> Result<(), PatchError> {
    if !operation.is_object() && !operation.is_null() {
        return Err(wrong_type(operation, strict, "handlers.jsonPatchOp", "jsonpatch.Operation"));
    }
    let wrong = ["op", "path", "from"].into_iter().find_map(|name| {
        let value = operation.get(name).filter(|value| !value.is_string() && !value.is_null())?;
        Some((name, value))
    });
    match wrong {
        Some((name, value)) if strict => Err(PatchError::BadRequest(format!(
            "error decoding patch: json: cannot unmarshal {} into Go struct field jsonPatchOp.{name} of type string",
            json_name(value)
        ))),
        _ => Ok(()),
    }
}

fn wrong_type(value: &Value, strict: bool, checked: &str, unchecked: &str) -> PatchError {
    let kind = json_name(value);
    PatchError::BadRequest(if strict {
        format!("error decoding patch: json: cannot unmarshal {kind} into Go value of type {checked}")
    } else {
        format!("json: cannot unmarshal {kind} into Go value of type {unchecked}")
    })
}

/// `None` if the operation does not apply. Why is not told to anybody.
fn apply(object: &mut Value, operation: &Value) -> Option<()> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or_default();
    let path = text("path");
    match text("op")? {
        "add" => add(object, path?, value()),
        "remove" => remove(object, path?).map(drop),
        "replace" => replace(object, path?, value()),
        "move" => {
            let moved = remove(object, text("from")?)?;
            add(object, path?, moved)
        }
        "copy" => {
            let copied = get(object, text("from")?)?.cloned().unwrap_or_default();
            add(object, path?, copied)
        }
        "test" => {
            let found = if path?.is_empty() { Some(&*object) } else { get(object, path?)? };
            (*found.unwrap_or(&Value::Null) == value() || fault!(TestIgnored)).then_some(())
        }
        _ => None,
    }
}

fn add(object: &mut Value, path: &str, value: Value) -> Option<()> {
    let (parent, key) = parent(object, path)?;
    match parent {
        Value::Object(fields) => drop(fields.insert(key, value)),
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let place = place(&key, items.len() + 1)?;
            items.insert(place, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(object: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = parent(object, path)?;
    match parent {
        Value::Object(fields) => fields.remove(&key),
        Value::Array(items) => place(&key, items.len()).map(|place| items.remove(place)),
        _ => None,
    }
}

fn replace(object: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *object = Some(value).filter(|value| value.is_object() || value.is_array())?;
        return Some(());
    }
    let (parent, key) = parent(object, path)?;
    match parent {
        Value::Object(fields) => drop(fields.insert(key, value)),
        Value::Array(items) => {
            let place = place(&key, items.len())?;
            *items.get_mut(place)? = value;
        }
        _ => return None,
    }
    Some(())
}

/// The value at a path. The outer `None` is a path that leads nowhere, the inner one a field that is not there.
fn get<'v>(object: &'v mut Value, path: &str) -> Option<Option<&'v Value>> {
    let (parent, key) = parent(object, path)?;
    match parent {
        Value::Object(fields) => Some(fields.get(&key)),
        Value::Array(items) => place(&key, items.len()).map(|place| items.get(place)),
        _ => None,
    }
}

/// The value that holds what the path points to, and the key there. What is before the first slash does not count.
fn parent<'v>(object: &'v mut Value, path: &str) -> Option<(&'v mut Value, String)> {
    let (_, path) = path.split_once('/')?;
    let (steps, key) = match path.rsplit_once('/') {
        Some((steps, key)) => (Some(steps), key),
        None => (None, path),
    };
    let mut value = object;
    for step in steps.into_iter().flat_map(|steps| steps.split('/')) {
        value = match value {
            Value::Object(fields) => fields.get_mut(&unescaped(step))?,
            Value::Array(items) => {
                let place = place(&unescaped(step), items.len())?;
                items.get_mut(place)?
            }
            _ => return None,
        };
    }
    Some((value, unescaped(key)))
}

/// The index that a key means in a list with so many places.
fn place(key: &str, len: usize) -> Option<usize> {
    let index: i64 = key.parse().ok()?;
    let len = i64::try_from(len).ok()?;
    let index = if index < 0 { index + len } else { index };
    (0..len).contains(&index).then(|| usize::try_from(index).ok()).flatten()
}

fn unescaped(key: &str) -> String {
    // `~01` means `~1`: each escape is read once, from the left.
    let mut out = String::with_capacity(key.len());
    let mut rest = key;
    while let Some(at) = rest.find('~') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let (text, skipped) = match after.get(..2) {
            Some("~1") => ("/", 2),
            Some("~0") => ("~", 2),
            _ => ("~", 1),
        };
        out.push_str(text);
        rest = after.get(skipped..).unwrap_or_default();
    }
    out + rest
}
