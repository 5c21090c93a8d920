// SPDX-License-Identifier: Apache-2.0
//! What the walks of this module need to know of a schema.

use std::borrow::Cow;

use serde_json::Value;

use super::{element::PathElement, wording};
use crate::schema::{List, ListKind, Schema, Shape, TypeId};

/// The type of what no schema describes. An index that points nowhere is that type, see [`crate::schema::Types`].
pub const ANY: TypeId = TypeId(u32::MAX);

/// A number or a text, never more.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
/// Any value, but owned as a whole.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// How a value is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Scalar,
    List,
    Map,
}

/// How a value of this type is walked. Where the type does not say, the value does; `null` goes with objects.
pub fn kind(schema: Schema<'_>, value: &Value) -> Kind {
    match schema.shape() {
        Shape::Struct(_) | Shape::Map { .. } => Kind::Map,
        Shape::List(_) => Kind::List,
        Shape::Boolean | Shape::Integer { .. } | Shape::Number { .. } | Shape::String { .. } => Kind::Scalar,
        Shape::IntOrString if is_named(schema, QUANTITY) => Kind::Scalar,
        Shape::Any | Shape::IntOrString => match value {
            Value::Array(_) => Kind::List,
            Value::Object(_) | Value::Null => Kind::Map,
            _ => Kind::Scalar,
        },
    }
}

/// The type of an object's field, and whether the schema names that field.
pub fn child<'s>(schema: Schema<'s>, key: &str) -> (Schema<'s>, bool) {
    match schema.shape() {
        Shape::Struct(of) => match of.fields.get(key) {
            Some(field) => (schema.at(field.of), true),
            None => (schema.at(ANY), false),
        },
        Shape::Map { values, .. } => (schema.at(*values), false),
        _ => (schema.at(ANY), false),
    }
}

/// A list whose items are owned one by one, with the type of the items. Untyped lists are atomic.
pub fn associative<'s>(schema: Schema<'s>) -> Option<(&'s List, Schema<'s>)> {
    match schema.shape() {
        Shape::List(list) if list.kind != ListKind::Atomic => Some((list, schema.at(list.items))),
        _ => None,
    }
}

/// Whether values of this type are owned as a whole by their schema's word.
pub fn is_atomic(schema: Schema<'_>) -> bool {
    match schema.shape() {
        Shape::Struct(of) => of.atomic,
        Shape::Map { atomic, .. } => *atomic,
        Shape::List(list) => list.kind == ListKind::Atomic,
        Shape::Any => is_named(schema, RAW_EXTENSION),
        _ => false,
    }
}

fn is_named(schema: Schema<'_>, name: &str) -> bool {
    schema.ty().name.as_deref() == Some(name)
}

/// The element that finds an item of an associative list.
pub fn element<'a>(list: &'a List, items: Schema<'a>, item: &'a Value) -> Result<PathElement<'a>, String> {
    let ListKind::Map { keys } = &list.kind else {
        return match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
            scalar => Ok(PathElement::Value(Cow::Borrowed(scalar))),
        };
    };
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let default = || items.field(key).and_then(|(_, schema)| schema.ty().default.as_ref());
        if let Some(value) = fields.get(&**key).or_else(|| default().filter(|value| !value.is_null())) {
            found.push((Cow::Borrowed(&**key), Cow::Borrowed(value)));
        }
    }
    if found.is_empty() {
        let keys: Vec<_> = keys.iter().map(|key| wording::quoted(key)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
             for any key fields)",
            keys.join(" ")
        ));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(PathElement::Key(found))
}

/// The items of a list with their elements, sorted by element. Items that have no element are left out: the list has
/// been validated before.
pub fn keyed<'a>(list: &'a List, items: Schema<'a>, values: &'a [Value]) -> Vec<(PathElement<'a>, &'a Value)> {
    let mut keyed: Vec<_> =
        values.iter().filter_map(|item| element(list, items, item).ok().map(|at| (at, item))).collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    keyed
}
