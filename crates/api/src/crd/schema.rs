// SPDX-License-Identifier: Apache-2.0
//! Schemas that the derive macros cannot make, for `#[schemars(schema_with = "…")]`.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::{
    JsonSchema, Schema, SchemaGenerator, json_schema, transform::Transform, transform::transform_subschemas,
};
use serde_json::json;

/// How Kubernetes spells a quantity, such as `500m` or `1Gi`.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// A name, with or without a domain before it.
const CONDITION_TYPE: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

/// A Kubernetes type inside one of ours: without its long descriptions, and with checked quantities.
///
/// Use it on every field whose type comes from `k8s_openapi`; the field's own comment stays.
pub fn embedded<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut foreign = Foreign { quantity: Quantity::json_schema(generator) };
    let mut schema = generator.subschema_for::<T>();
    foreign.transform(&mut schema);
    schema
}

/// As [`embedded`], for a type in which Kubernetes replaces the objects at these pointers as a whole. The plain OpenAPI
/// does not tell this, and server-side apply must know it.
pub fn embedded_atomic<T: JsonSchema>(generator: &mut SchemaGenerator, pointers: &[&str]) -> Schema {
    let mut schema = embedded::<T>(generator);
    for pointer in pointers {
        if let Some(node) = schema.pointer_mut(pointer).and_then(|node| node.as_object_mut()) {
            node.insert("x-kubernetes-map-type".into(), "atomic".into());
        }
    }
    schema
}

struct Foreign {
    quantity: Schema,
}

impl Transform for Foreign {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if *schema == self.quantity {
            schema.insert("pattern".into(), QUANTITY.into());
            schema.insert("anyOf".into(), json!([{"type": "integer"}, {"type": "string"}]));
        }
        schema.remove("description");
    }
}

/// Any JSON object; what is in it is not looked at.
pub fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Any JSON value at all.
pub fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// Conditions that writers may own one by one.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": condition(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// Conditions that one writer replaces as a whole.
pub fn atomic_conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": condition(), "x-kubernetes-list-type": "atomic"})
}

/// `metav1.Condition` with the limits that the plain OpenAPI of Kubernetes leaves out.
fn condition() -> Schema {
    json_schema!({
        "type": "object",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "lastTransitionTime": {
                "description": "When the status last changed.", "type": "string", "format": "date-time",
            },
            "message": {"description": "What happened, for people.", "type": "string", "maxLength": 32768},
            "observedGeneration": {
                "description": "Generation of the spec that this condition speaks of.",
                "type": "integer", "format": "int64", "minimum": 0,
            },
            "reason": {
                "description": "Why, in one word for programs.",
                "type": "string", "minLength": 1, "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "status": {
                "description": "Whether the condition holds.", "type": "string", "enum": ["True", "False", "Unknown"],
            },
            "type": {
                "description": "What the condition is about, such as Ready.",
                "type": "string", "maxLength": 316, "pattern": CONDITION_TYPE,
            },
        },
    })
}
