// SPDX-License-Identifier: Apache-2.0
//! The object that a built-in kind starts from.

use serde_json::{Map, Value};

use crate::{
    builtin::Builtins,
    schema::{Schema, Shape, TypeId},
};

/// Fields that get an empty object as their default, but are not there before.
const DEFAULTED: [&str; 3] = ["namespaceSelector", "objectSelector", "securityContext"];

/// Required fields that are not there before, by the type that has them.
const ABSENT: [(&str, &str); 3] = [
    ("IPAddressSpec", "parentRef"),
    ("ValidatingAdmissionPolicyBindingSpec", "policyName"),
    ("ValidatingAdmissionPolicyBindingSpec", "validationActions"),
];

/// Optional fields that are there before, with their zero.
const PRESENT: [(&str, &str); 13] = [
    ("ClusterRole", "rules"),
    ("EndpointSlice", "endpoints"),
    ("EndpointSlice", "ports"),
    ("Event", "deprecatedFirstTimestamp"),
    ("Event", "deprecatedLastTimestamp"),
    ("Event", "eventTime"),
    ("Event", "firstTimestamp"),
    ("Event", "lastTimestamp"),
    ("Event", "reportingComponent"),
    ("Event", "reportingInstance"),
    ("PriorityClass", "value"),
    ("Role", "rules"),
    ("StatefulSetSpec", "serviceName"),
];

/// What the types of a built-in kind hold when nothing is set. Its fields count as there before the first write, so that a
/// writer does not come to own an object by filling it.
pub fn zero(builtins: &Builtins, root: TypeId) -> Value {
    struct_zero(builtins, builtins.types.at(root))
}

fn struct_zero(builtins: &Builtins, schema: Schema<'_>) -> Value {
    let Shape::Struct(of) = schema.shape() else { return Value::Object(Map::new()) };
    let name = schema.ty().name.as_deref().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
    let mut fields = Map::new();
    for (key, field) in &of.fields {
        let at = (name, &**key);
        let inner = schema.at(field.of);
        let value = match builtins.filled(schema.id(), key) {
            Some(Value::Object(fill)) if fill.is_empty() && !DEFAULTED.contains(&&**key) => {
                struct_zero(builtins, inner)
            }
            _ if PRESENT.contains(&at) => scalar_zero(inner.shape()),
            _ if field.required && !ABSENT.contains(&at) => scalar_zero(inner.shape()),
            _ => continue,
        };
        fields.insert(key.to_string(), value);
    }
    Value::Object(fields)
}

fn scalar_zero(shape: &Shape) -> Value {
    match shape {
        Shape::Boolean => Value::from(false),
        Shape::Integer { .. } | Shape::Number { .. } => Value::from(0),
        Shape::String { format: None } => Value::from(""),
        _ => Value::Null,
    }
}
