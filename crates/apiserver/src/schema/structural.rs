// SPDX-License-Identifier: Apache-2.0
//! From the `openAPIV3Schema` of a CustomResourceDefinition to the types of this crate.

use serde_json::Value;

use super::{Field, List, ListKind, Shape, Struct, Type, TypeId, Types};
use crate::builtin::builtins;

/// Reads the schema of one version. The answer knows `apiVersion`, `kind` and `metadata`, whatever the schema says of them.
pub fn read(schema: Option<&Value>) -> (Types, TypeId) {
    let mut reader = Reader { types: Types::default() };
    let root = match schema {
        Some(schema) => reader.object(schema, true),
        None => reader
            .types
            .push(Type { shape: Shape::Struct(Struct { open: true, ..Struct::default() }), ..Type::default() }),
    };
    reader.complete(root);
    (reader.types, root)
}

struct Reader {
    types: Types,
}

impl Reader {
    fn object(&mut self, schema: &Value, root: bool) -> TypeId {
        let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or_default();
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let open = flag("x-kubernetes-preserve-unknown-fields");
        let format = text("format").map(Into::into);
        let shape = match text("type") {
            _ if flag("x-kubernetes-int-or-string") => Shape::IntOrString,
            Some("boolean") => Shape::Boolean,
            Some("integer") => Shape::Integer { format },
            Some("number") => Shape::Number { format },
            Some("string") => Shape::String { format },
            Some("array") => self.list(schema),
            Some("object") => self.map_or_struct(schema, open),
            _ => Shape::Any,
        };
        let ty = Type {
            name: None,
            description: text("description").map(Into::into),
            shape,
            nullable: flag("nullable"),
            default: schema.get("default").cloned(),
        };
        let id = self.types.push(ty);
        if flag("x-kubernetes-embedded-resource") && !root {
            self.complete(id);
        }
        id
    }

    fn list(&mut self, schema: &Value) -> Shape {
        let items = match schema.get("items") {
            Some(items) => self.object(items, false),
            None => self.types.push(Type::default()),
        };
        let kind = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => ListKind::Set,
            Some("map") => ListKind::Map { keys: strings(schema.get("x-kubernetes-list-map-keys")) },
            _ => ListKind::Atomic,
        };
        Shape::List(List { items, kind })
    }

    fn map_or_struct(&mut self, schema: &Value, open: bool) -> Shape {
        let atomic = schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic");
        match schema.get("additionalProperties") {
            Some(Value::Bool(true)) => {
                let values = self.types.push(Type::default());
                return Shape::Map { values, atomic };
            }
            Some(values @ Value::Object(_)) => {
                let values = self.object(values, false);
                return Shape::Map { values, atomic };
            }
            _ => {}
        }
        let required = strings(schema.get("required"));
        let mut of = Struct { open, atomic, ..Struct::default() };
        of.embedded = schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool).unwrap_or_default();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let name: Box<str> = name.as_str().into();
            let field = Field { of: self.object(property, false), required: required.contains(&name), patch: None };
            of.fields.insert(name, field);
        }
        Shape::Struct(of)
    }

    /// Every object has these three fields, even if its schema does not name them.
    fn complete(&mut self, id: TypeId) {
        let meta = self.import_metadata();
        let text = self.types.push(Type { shape: Shape::String { format: None }, ..Type::default() });
        let Some(ty) = self.types.get_mut(id) else { return };
        if matches!(ty.shape, Shape::Any) {
            ty.shape = Shape::Struct(Struct { open: true, ..Struct::default() });
        }
        if let Shape::Struct(of) = &mut ty.shape {
            for (name, of_type) in [("apiVersion", text), ("kind", text), ("metadata", meta)] {
                of.fields.insert(name.into(), Field { of: of_type, required: false, patch: None });
            }
        }
    }

    /// Copies ObjectMeta and what it refers to from the built-in types.
    fn import_metadata(&mut self) -> TypeId {
        const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
        let known = self.types.iter().find(|(_, ty)| ty.name.as_deref() == Some(OBJECT_META)).map(|(id, _)| id);
        match (known, builtins().named(OBJECT_META)) {
            (Some(known), _) => known,
            (None, Some(id)) => self.import(id),
            (None, None) => self.types.push(Type::default()),
        }
    }

    fn import(&mut self, id: TypeId) -> TypeId {
        let mut ty = builtins().types.get(id).clone();
        match &mut ty.shape {
            Shape::List(list) => list.items = self.import(list.items),
            Shape::Map { values, .. } => *values = self.import(*values),
            Shape::Struct(of) => {
                for field in of.fields.values_mut() {
                    field.of = self.import(field.of);
                }
            }
            _ => {}
        }
        self.types.push(ty)
    }
}

fn strings(list: Option<&Value>) -> Vec<Box<str>> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(Into::into).collect()
}
