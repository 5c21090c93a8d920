// SPDX-License-Identifier: Apache-2.0
//! The set of fields that a configuration names.

use serde_json::Value;

use super::{
    element::PathElement,
    fields::Set,
    typed::{self, Kind},
};
use crate::schema::Schema;

/// Every leaf of the object, and every item of its lists and maps.
pub fn fields<'a>(object: &'a Value, schema: Schema<'a>) -> Set<'a> {
    walk(object, schema).1
}

/// Whether the value itself is in the set, and what is below it.
fn walk<'a>(value: &'a Value, schema: Schema<'a>) -> (bool, Set<'a>) {
    let mut below = Set::default();
    match typed::kind(schema, value) {
        Kind::Scalar => return (true, below),
        Kind::List => match (typed::associative(schema), value) {
            (None, _) => return (true, below),
            (Some((list, items)), Value::Array(values)) => {
                let keyed = typed::keyed(list, items, values);
                for group in keyed.chunk_by(|a, b| a.0 == b.0) {
                    match group {
                        [(at, item)] => below.push(at.clone(), true, walk(item, items).1),
                        // Items that come more than once are owned together, not by their parts.
                        [(at, _), ..] => below.push(at.clone(), true, Set::default()),
                        [] => {}
                    }
                }
            }
            _ => {}
        },
        Kind::Map if typed::is_atomic(schema) => return (true, below),
        Kind::Map => {
            for (key, value) in value.as_object().into_iter().flatten() {
                let (schema, named) = typed::child(schema, key);
                let (member, inner) = walk(value, schema);
                let bare = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                below.push(PathElement::field(key), member || bare || !named, inner);
            }
        }
    }
    (false, below)
}
