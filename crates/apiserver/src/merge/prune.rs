// SPDX-License-Identifier: Apache-2.0
//! Takes fields out of an object.

use serde_json::{Map, Value};

use super::{
    element::PathElement,
    fields::Set,
    typed::{self, Kind},
};
use crate::schema::Schema;

/// The object without the fields in `set`. A list or an object that loses all its content becomes `null`, and so does an
/// atomic one of which a part is to go.
pub fn remove(object: &Value, set: &Set<'_>, schema: Schema<'_>) -> Value {
    match (typed::kind(schema, object), object) {
        (Kind::Scalar, value) => value.clone(),
        (Kind::List, Value::Array(values)) => match typed::associative(schema) {
            Some((list, items)) => {
                let kept = values.iter().filter_map(|item| match typed::element(list, items, item) {
                    Ok(at) => remove_at(&at, item, set, items),
                    Err(_) => Some(item.clone()),
                });
                let kept: Vec<_> = kept.collect();
                if kept.is_empty() { Value::Null } else { Value::Array(kept) }
            }
            None => Value::Null,
        },
        (Kind::Map, Value::Object(fields)) if !typed::is_atomic(schema) => {
            let kept = fields.iter().filter_map(|(key, value)| {
                let kept = remove_at(&PathElement::field(key), value, set, typed::child(schema, key).0)?;
                Some((key.clone(), kept))
            });
            let kept: Map<_, _> = kept.collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        _ => Value::Null,
    }
}

fn remove_at(at: &PathElement<'_>, value: &Value, set: &Set<'_>, schema: Schema<'_>) -> Option<Value> {
    match set.get(at) {
        None => Some(value.clone()),
        Some((true, _)) => None,
        Some((false, below)) => Some(remove(value, below, schema)),
    }
}
