// SPDX-License-Identifier: Apache-2.0
//! Strategic merge patch: a merge patch that knows by which key to merge lists, with directives for what a merge cannot
//! say.

use std::mem::take;

use serde_json::{Map, Value};

use super::{PatchError, merge::drop_nulls, order::Order};
use crate::decode::json_name;
use crate::{
    merge::wording,
    schema::{PatchStrategy, Schema, Shape},
};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Fields = Map<String, Value>;

/// Patches an object of a built-in kind. Custom resources have no strategies; the caller refuses the patch for them.
pub fn strategic(object: Value, patch: Value, schema: Schema<'_>) -> Result<Value, PatchError> {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => merge_fields(object, patch, schema).map(Value::Object),
        (object, Value::Null) => Ok(object),
        (_, patch) => Err(PatchError::BadRequest(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_name(&patch)
        ))),
    }
}

fn merge_fields(mut object: Fields, mut patch: Fields, schema: Schema<'_>) -> Result<Fields, PatchError> {
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        Some("replace") => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some("delete") => return Ok(Fields::new()),
        _ => {}
    }
    if let Some(directive) = patch.get(DIRECTIVE) {
        return Err(unknown_directive(directive, &Value::Object(patch.clone())));
    }
    retain_keys(&mut object, &mut patch)?;
    set_orders(&mut object, &mut patch, schema)?;
    for (name, value) in patch {
        let delete_from = name.starts_with(DELETE_FROM);
        let key =
            if delete_from { list_name(&name, "invalid patch format of primitive list")?.to_owned() } else { name };
        if value.is_null() {
            object.remove(&key);
            continue;
        }
        match (object.get_mut(&key), value) {
            (Some(Value::Object(inner)), Value::Object(patch)) => {
                let (schema, strategy) = field(schema, &key)?;
                *inner = match strategy {
                    Some(strategy) if !strategy.merge && !strategy.retain_keys => patch,
                    _ => merge_fields(take(inner), patch, schema)?,
                };
            }
            (Some(Value::Array(items)), Value::Array(patch)) => {
                let (schema, strategy) = list(schema, &key)?;
                *items = merge_list(take(items), patch, schema, strategy, delete_from)?;
            }
            _ if delete_from => {}
            (_, mut value) => {
                drop_nulls(&mut value);
                match without_directives(value) {
                    Some(value) => drop(object.insert(key, value)),
                    None => drop(object.remove(&key)),
                }
            }
        }
    }
    Ok(object)
}

/// `$retainKeys` clears the fields that it does not name. It must name all fields of the patch.
fn retain_keys(object: &mut Fields, patch: &mut Fields) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let bad = || PatchError::BadRequest("invalid patch format of retainKeys".to_owned());
    let keys = keys.as_array().ok_or_else(bad)?;
    let named = |name: &str| keys.iter().any(|key| key == name);
    let directive = |name: &str| name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER);
    if patch.iter().any(|(name, value)| !value.is_null() && !directive(name) && !named(name)) {
        return Err(bad());
    }
    object.retain(|name, _| named(name) || fault!(RetainKeysIgnored));
    Ok(())
}

/// `$setElementOrder/…` merges its list and sorts it.
fn set_orders(object: &mut Fields, patch: &mut Fields, schema: Schema<'_>) -> Result<(), PatchError> {
    let directives: Vec<_> = patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let order = expect_list(patch.remove(&directive).unwrap_or_default())?;
        let key = list_name(&directive, "invalid patch format of setElementOrder list")?;
        let live = object.get(key).cloned().map(expect_list).transpose()?;
        let patched = patch.remove(key).map(expect_list).transpose()?;
        if let Some(list) = set_order(live, patched, &order, list(schema, key)?)? {
            object.insert(key.to_owned(), Value::Array(list));
        }
    }
    Ok(())
}

fn set_order(
    live: Option<Vec<Value>>,
    patch: Option<Vec<Value>>,
    order: &[Value],
    (schema, strategy): (Schema<'_>, Option<&PatchStrategy>),
) -> Result<Option<Vec<Value>>, PatchError> {
    let key = strategy.and_then(|strategy| strategy.merge_key.as_deref());
    let (was, wanted) = (live.clone().unwrap_or_default(), patch.clone().unwrap_or_default());
    if !order.is_empty() {
        check_order(&wanted, order, key)?;
    }
    let merged = match (live, patch) {
        (None, None) => return Ok(None),
        (Some(live), None) => live,
        (None, Some(patch)) => patch.into_iter().filter_map(without_directives).collect(),
        (Some(live), Some(patch)) => merge_list(live, patch, schema, strategy, false)?,
    };
    check_keys(key, &merged)?;
    element_kind(&[&was, &wanted])?;
    check_keys(key, order)?;
    let server = order_of_server(was, &wanted, key);
    Ok(Some(Order { key }.arrange(merged, order, &server)))
}

/// The order in which the items were. The real server overwrites its list while it merges: at the end, the places of
/// deleted items go to new ones.
fn order_of_server(mut live: Vec<Value>, patch: &[Value], key: Option<&str>) -> Vec<Value> {
    let Some(key) = key else { return live };
    let directive = |item: &Value, name: &str| item.get(DIRECTIVE).is_some_and(|directive| directive == name);
    let len = live.len();
    for item in patch.iter().filter(|item| directive(item, "delete")) {
        live.retain(|other| other.get(key) != item.get(key));
    }
    if !patch.iter().any(|item| directive(item, "replace")) {
        let known = |item: &&Value| live.iter().any(|other| other.get(key) == item.get(key));
        let new: Vec<_> = patch.iter().filter(|item| item.get(DIRECTIVE).is_none() && !known(item)).cloned().collect();
        live.extend(new);
        live.truncate(len);
    }
    live
}

/// Items of the patch must be in the order that it sets. Deletions are in no order.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if let (Some(_), Some(item)) = (key, patch.iter().find(|item| !item.is_object())) {
        return Err(expected("map[string]interface {}", item));
    }
    let deletes = |item: &&Value| key.is_some() && item.get(DIRECTIVE).is_some_and(|directive| directive == "delete");
    let mut items = patch.iter().filter(|item| !deletes(item)).peekable();
    let mut places = order.iter();
    while let Some(item) = items.peek() {
        if !places.as_slice().is_empty() && item.get(DIRECTIVE).is_some() {
            items.next();
            continue;
        }
        let Some(place) = places.next() else {
            let print = |items: &[Value]| wording::plain(&Value::Array(items.to_vec()));
            return Err(PatchError::Failed(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                print(patch),
                print(order)
            )));
        };
        let same = match key {
            None => place == *item,
            Some(key) => key_of(item, key)? == key_of(place, key)?,
        };
        if same {
            items.next();
        }
    }
    Ok(())
}

fn merge_list(
    live: Vec<Value>,
    patch: Vec<Value>,
    schema: Schema<'_>,
    strategy: Option<&PatchStrategy>,
    delete: bool,
) -> Result<Vec<Value>, PatchError> {
    if !delete && !strategy.is_some_and(|strategy| strategy.merge && !fault!(MergeKeyIgnored)) {
        return Ok(patch);
    }
    if live.is_empty() && patch.is_empty() {
        return Ok(live);
    }
    if element_kind(&[&live, &patch])? != "map[string]interface {}" {
        if delete {
            return Ok(live.into_iter().filter(|item| !patch.contains(item)).collect());
        }
        let mut merged: Vec<Value> = Vec::with_capacity(live.len() + patch.len());
        for item in live.iter().chain(&patch) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return Ok(Order { key: None }.arrange(merged, &patch, &live));
    }
    let Some(key) = strategy.and_then(|strategy| strategy.merge_key.as_deref()) else {
        return Err(PatchError::Failed("cannot merge lists without merge key for struct".to_owned()));
    };
    let (live, patch) = apply_directives(live, patch, key)?;
    let mut merged = live.clone();
    for item in &patch {
        let id = key_of(item, key)?;
        match (merged.iter_mut().find(|other| other.get(key) == Some(id)), item) {
            (Some(Value::Object(found)), Value::Object(item)) => {
                *found = merge_fields(take(found), item.clone(), schema)?
            }
            _ => merged.push(item.clone()),
        }
    }
    check_keys(Some(key), &merged)?;
    Ok(Order { key: Some(key) }.arrange(merged, &patch, &live))
}

/// Items of the patch that say what to do with the list, not what to put into it.
fn apply_directives(
    mut live: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut replace = false;
    let mut items = Vec::with_capacity(patch.len());
    for item in patch {
        match item.get(DIRECTIVE) {
            None => items.push(item),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    let id = key_of(&item, key)?;
                    live.retain(|other| other.get(key) != Some(id));
                }
                Some("replace") => replace = true,
                Some("merge") => {
                    return Err(PatchError::Failed("merging lists cannot yet be specified in the patch".to_owned()));
                }
                _ => return Err(unknown_directive(directive, &item)),
            },
        }
    }
    Ok(if replace { (items, Vec::new()) } else { (live, items) })
}

/// A value of the patch that is new to the object. What is only a directive is nothing.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let fields = fields.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(fields.collect()))
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        other => Some(other),
    }
}

/// The field's schema and strategy. Free-form objects have fields but no names for them.
fn field<'s>(schema: Schema<'s>, name: &str) -> Result<(Schema<'s>, Option<&'s PatchStrategy>), PatchError> {
    if let Some((field, schema)) = schema.field(name) {
        return Ok((schema, field.patch.as_deref()));
    }
    Err(PatchError::Failed(match schema.shape() {
        Shape::Struct(_) => {
            let of = schema.ty().name.as_deref().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
            format!("unable to find api field in struct {of} for the json field {}", wording::quoted(name))
        }
        _ => "merging an object in json but data type is not struct, instead is: map".to_owned(),
    }))
}

/// The schema of a list's items and its strategy.
fn list<'s>(schema: Schema<'s>, name: &str) -> Result<(Schema<'s>, Option<&'s PatchStrategy>), PatchError> {
    let (list, strategy) = field(schema, name)?;
    match list.items() {
        Some(items) => Ok((items, strategy)),
        None => Err(PatchError::Failed("expected slice or array type, but got: struct".to_owned())),
    }
}

/// What follows the slash of a directive.
fn list_name<'n>(directive: &'n str, error: &str) -> Result<&'n str, PatchError> {
    match directive.split_once('/') {
        Some((DELETE_FROM | SET_ORDER, name)) => Ok(name),
        _ => Err(PatchError::BadRequest(error.to_owned())),
    }
}

/// The type that all items have.
fn element_kind(lists: &[&[Value]]) -> Result<&'static str, PatchError> {
    let kind = |value: &Value| match value {
        Value::Number(number) if !number.is_f64() => "int64",
        other => wording::type_name(other),
    };
    let mut kinds = lists.iter().flat_map(|items| items.iter()).map(kind);
    let Some(first) = kinds.next() else {
        return Err(PatchError::Failed("no elements in any of the given slices".to_owned()));
    };
    if first == "[]interface {}" {
        return Err(PatchError::Rejected);
    }
    if kinds.any(|other| other != first) {
        let lists: Vec<_> = lists.iter().map(|items| wording::plain(&Value::Array(items.to_vec()))).collect();
        return Err(PatchError::Failed(format!("list element types are not identical: [{}]", lists.join(" "))));
    }
    Ok(first)
}

/// All items must have the key that finds them.
fn check_keys(key: Option<&str>, items: &[Value]) -> Result<(), PatchError> {
    items.iter().try_for_each(|item| key.map_or(Ok(()), |key| key_of(item, key).map(drop)))
}

fn key_of<'v>(item: &'v Value, key: &str) -> Result<&'v Value, PatchError> {
    let fields = item.as_object().ok_or_else(|| expected("map[string]interface {}", item))?;
    fields.get(key).ok_or_else(|| {
        let item = wording::plain(item);
        PatchError::Failed(format!("map: {item} does not contain declared merge key: {key}"))
    })
}

fn expect_list(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(expected("[]interface {}", &other)),
    }
}

fn expected(what: &str, found: &Value) -> PatchError {
    PatchError::Failed(format!("expected a {what}, but received a {}", wording::type_name(found)))
}

fn unknown_directive(directive: &Value, item: &Value) -> PatchError {
    PatchError::Failed(format!("unknown patch type: {} in map: {}", wording::plain(directive), wording::plain(item)))
}
