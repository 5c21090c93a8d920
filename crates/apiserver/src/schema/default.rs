// SPDX-License-Identifier: Apache-2.0
//! Filling in the defaults of custom resources.

use serde_json::Value;

use super::{Schema, Shape, Struct};

/// Fills in what is absent and has a default. A `null` that the type does not allow counts as absent.
pub fn fill(value: &mut Value, schema: Schema<'_>) {
    walk(value, schema, true);
}

/// The same, but a `null` without a default stays.
pub fn fill_keeping_nulls(value: &mut Value, schema: Schema<'_>) {
    walk(value, schema, false);
}

fn walk(value: &mut Value, schema: Schema<'_>, drops: bool) {
    match (value, schema.shape()) {
        (Value::Object(map), Shape::Struct(of)) => {
            if drops {
                drop_nulls(map, of, schema);
            }
            for (name, field) in &of.fields {
                let ty = schema.at(field.of);
                match map.get_mut(&**name) {
                    Some(present) if !present.is_null() || ty.ty().nullable => walk(present, ty, drops),
                    _ => {
                        if let Some(default) = ty.ty().default.as_ref().filter(|_| !fault!(DefaultsOff)) {
                            let mut default = default.clone();
                            walk(&mut default, ty, drops);
                            map.insert(name.to_string(), default);
                        }
                    }
                }
            }
        }
        (Value::Object(map), Shape::Map { values, .. }) => {
            map.values_mut().for_each(|value| replace_null(value, schema.at(*values), drops));
        }
        (Value::Array(list), Shape::List(of)) => {
            list.iter_mut().for_each(|item| replace_null(item, schema.at(of.items), drops));
        }
        _ => {}
    }
}

fn replace_null(value: &mut Value, schema: Schema<'_>, drops: bool) {
    if value.is_null()
        && !schema.ty().nullable
        && let Some(default) = &schema.ty().default
    {
        *value = default.clone();
    }
    walk(value, schema, drops);
}

/// A `null` that the type does not allow goes if there is no default to take its place.
fn drop_nulls(map: &mut serde_json::Map<String, Value>, of: &Struct, schema: Schema<'_>) {
    map.retain(|key, value| {
        let Some(field) = of.fields.get(key.as_str()).filter(|_| value.is_null()) else { return true };
        let ty = schema.at(field.of).ty();
        ty.nullable || ty.default.is_some() || matches!(ty.shape, Shape::Any)
    });
}
