// SPDX-License-Identifier: Apache-2.0
//! OpenAPI documents: enough for `kubectl apply`, `explain`, `diff` and `edit`, made from the same types that the server
//! works with.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{
    builtin::builtins,
    object::{as_object, set},
    registry::{Registry, Resource},
    schema::{ListKind, PatchStrategy, Schema, Shape},
};

const DIALECT_3: &str = "#/components/schemas/";
const DIALECT_2: &str = "#/definitions/";

/// `/openapi/v3`: where the documents of the groups are.
pub fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for (path, hash) in group_paths(registry) {
        let url = format!("/openapi/v3/{path}?hash={hash:016X}");
        paths.insert(path, json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

/// The documents and a number that changes with their content.
fn group_paths(registry: &Registry) -> Vec<(String, u64)> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut paths = Vec::new();
    for group in registry.groups() {
        for version in &group.versions {
            let mut hasher = DefaultHasher::new();
            for resource in registry.version(&group.name, version) {
                (&resource.plural, &resource.kind).hash(&mut hasher);
                if let Some(custom) = resource.custom() {
                    custom.open_api.to_string().hash(&mut hasher);
                }
            }
            paths.push((path(&group.name, version), hasher.finish()));
        }
    }
    paths
}

fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// `/openapi/v3/apis/GROUP/VERSION`
pub fn document(registry: &Registry, wanted: &str) -> Option<Value> {
    let (group, version) = registry
        .groups()
        .iter()
        .flat_map(|group| group.versions.iter().map(move |version| (group, version)))
        .find(|(group, version)| path(&group.name, version) == wanted)?;
    let mut writer = Writer::new(DIALECT_3);
    let mut paths = Map::new();
    for resource in registry.version(&group.name, version) {
        writer.resource(resource);
        operations(resource, &mut paths);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": crate::discovery::VERSION },
        "paths": paths,
        "components": { "schemas": writer.finish() },
    }))
}

/// `/openapi/v2`: everything in one document.
pub fn document_v2(registry: &Registry) -> Value {
    let mut writer = Writer::new(DIALECT_2);
    let mut paths = Map::new();
    for resource in registry.all() {
        writer.resource(resource);
        operations(resource, &mut paths);
    }
    json!({
        "swagger": "2.0",
        "info": { "title": "Kubernetes", "version": crate::discovery::VERSION },
        "paths": paths,
        "definitions": writer.finish(),
    })
}

/// The paths of a resource, with the parameters that clients look for before they send them.
fn operations(resource: &Resource, paths: &mut Map<String, Value>) {
    let kind = json!({ "group": &*resource.group, "version": &*resource.version, "kind": &*resource.kind });
    let parameter = |name: &str, kind: &str| json!({ "name": name, "in": "query", "schema": { "type": kind, "uniqueItems": true } });
    let operation = |action: &str, parameters: &[Value]| {
        json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind,
            "parameters": parameters,
            "responses": { "200": { "description": "OK" } },
        })
    };
    let write =
        [parameter("dryRun", "string"), parameter("fieldManager", "string"), parameter("fieldValidation", "string")];
    let root = path(&resource.group, &resource.version);
    let base = if resource.namespaced {
        format!("/{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("/{root}/{}", resource.plural)
    };
    let served = |verb: &str| resource.serves(verb);
    let mut collection = Map::new();
    let mut one = Map::new();
    let add = |map: &mut Map<String, Value>, verb: &str, method: &str, action: &str, parameters: &[Value]| {
        if served(verb) {
            map.insert(method.to_owned(), operation(action, parameters));
        }
    };
    add(&mut collection, "list", "get", "list", &[parameter("limit", "integer")]);
    add(&mut collection, "create", "post", "post", &write);
    add(&mut one, "get", "get", "get", &[]);
    add(&mut one, "update", "put", "put", &write);
    let mut apply = write.to_vec();
    apply.push(parameter("force", "boolean"));
    add(&mut one, "patch", "patch", "patch", &apply);
    add(&mut one, "delete", "delete", "delete", &[parameter("dryRun", "string")]);
    paths.insert(base.clone(), Value::Object(collection));
    paths.insert(format!("{base}/{{name}}"), Value::Object(one));
}

struct Writer {
    reference: &'static str,
    schemas: BTreeMap<String, Value>,
    /// Names that are referred to and not written yet.
    missing: BTreeSet<String>,
}

impl Writer {
    fn new(reference: &'static str) -> Self {
        Self { reference, schemas: BTreeMap::new(), missing: BTreeSet::new() }
    }

    fn resource(&mut self, resource: &Resource) {
        let Some(custom) = resource.custom() else {
            if let Some(name) = resource.schema.schema().ty().name.as_deref() {
                self.missing.insert(name.to_owned());
                self.missing.insert(format!("{name}List"));
            }
            self.missing.extend(subresource_kinds(resource));
            return;
        };
        const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
        const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
        // What the operations take and give.
        for name in ["DeleteOptions", "Patch", "Status"] {
            self.missing.insert(format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}"));
        }
        let name = reversed(&resource.group, &resource.version, &resource.kind);
        let mut schema = custom.open_api.clone();
        let map = as_object(&mut schema);
        map.entry("type").or_insert("object".into());
        let properties = as_object(map.entry("properties").or_insert_with(|| json!({})));
        properties.insert("apiVersion".into(), json!({ "type": "string" }));
        properties.insert("kind".into(), json!({ "type": "string" }));
        properties.insert("metadata".into(), self.refer(OBJECT_META));
        map.insert("x-kubernetes-group-version-kind".into(), gvk(resource, &resource.kind));
        let list = json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": { "type": "string" },
                "kind": { "type": "string" },
                "metadata": self.refer(LIST_META),
                "items": { "type": "array", "items": { "$ref": format!("{}{name}", self.reference) } },
            },
            "x-kubernetes-group-version-kind": gvk(resource, &resource.list_kind),
        });
        self.schemas.insert(format!("{name}List"), list);
        self.schemas.insert(name, schema);
    }

    fn refer(&mut self, name: &str) -> Value {
        if !self.schemas.contains_key(name) {
            self.missing.insert(name.to_owned());
        }
        json!({ "$ref": format!("{}{name}", self.reference) })
    }

    /// Writes everything that was referred to, and what that refers to.
    fn finish(mut self) -> BTreeMap<String, Value> {
        while let Some(name) = self.missing.pop_first() {
            let Some(id) = builtins().named(&name) else { continue };
            let schema = builtins().types.at(id);
            // The place is taken before the walk, because types may contain themselves.
            self.schemas.insert(name.clone(), Value::Null);
            let mut written = self.shape(schema);
            let kinds: Vec<Value> = builtins()
                .kinds()
                .filter(|(_, of)| *of == id)
                .map(|(kind, _)| json!({ "group": &*kind.group, "version": &*kind.version, "kind": &*kind.kind }))
                .collect();
            if !kinds.is_empty() {
                set(&mut written, "x-kubernetes-group-version-kind", Value::Array(kinds));
            }
            self.schemas.insert(name, written);
        }
        self.schemas
    }

    /// A type where it is used: a reference if it has a name.
    fn used(&mut self, schema: Schema<'_>) -> Value {
        match schema.ty().name.as_deref() {
            Some(name) => self.refer(name),
            None => self.shape(schema),
        }
    }

    fn shape(&mut self, schema: Schema<'_>) -> Value {
        let scalar = |kind: &str, format: &Option<Box<str>>| match format {
            Some(format) => json!({ "type": kind, "format": &**format }),
            None => json!({ "type": kind }),
        };
        let mut written = match schema.shape() {
            Shape::Any => json!({}),
            Shape::Boolean => json!({ "type": "boolean" }),
            Shape::Integer { format } => scalar("integer", format),
            Shape::Number { format } => scalar("number", format),
            Shape::String { format } => scalar("string", format),
            Shape::IntOrString => json!({ "type": "string", "format": "int-or-string" }),
            Shape::List(list) => {
                let mut written = json!({ "type": "array", "items": self.used(schema.at(list.items)) });
                let kind = match &list.kind {
                    ListKind::Atomic => "atomic",
                    ListKind::Set => "set",
                    ListKind::Map { keys } => {
                        set(
                            &mut written,
                            "x-kubernetes-list-map-keys",
                            keys.iter().map(|key| &**key).collect::<Value>(),
                        );
                        "map"
                    }
                };
                set(&mut written, "x-kubernetes-list-type", kind);
                written
            }
            Shape::Map { values, .. } => {
                json!({ "type": "object", "additionalProperties": self.used(schema.at(*values)) })
            }
            Shape::Struct(of) => {
                let mut properties = Map::new();
                for (name, field) in &of.fields {
                    let mut property = self.used(schema.at(field.of));
                    annotate(&mut property, field.patch.as_deref());
                    properties.insert(name.to_string(), property);
                }
                let required: Vec<&str> =
                    of.fields.iter().filter(|(_, field)| field.required).map(|(name, _)| &**name).collect();
                let mut written = json!({ "type": "object", "properties": properties });
                if !required.is_empty() {
                    set(&mut written, "required", required);
                }
                if of.atomic {
                    set(&mut written, "x-kubernetes-map-type", "atomic");
                }
                written
            }
        };
        if let Some(values) = builtins().enums.get(&schema.id()) {
            set(&mut written, "enum", values.iter().map(|value| &**value).collect::<Value>());
        }
        written
    }
}

/// A reference cannot carry anything beside itself, so it is wrapped.
fn annotate(property: &mut Value, patch: Option<&PatchStrategy>) {
    let Some(patch) = patch else { return };
    if property.get("$ref").is_some() {
        *property = json!({ "allOf": [property.take()] });
    }
    let mut strategies = Vec::new();
    if patch.merge {
        strategies.push("merge");
    }
    if patch.retain_keys {
        strategies.push("retainKeys");
    }
    if !strategies.is_empty() {
        set(property, "x-kubernetes-patch-strategy", strategies.join(","));
    }
    if let Some(key) = &patch.merge_key {
        set(property, "x-kubernetes-patch-merge-key", key.as_ref());
    }
}

/// The definitions of what subresources take and give.
fn subresource_kinds(resource: &Resource) -> Vec<String> {
    let kinds = resource.subresources.iter().filter(|part| part.kind != resource.kind).filter_map(|part| {
        let (group, version) = if part.version.is_empty() {
            (&*resource.group, &*resource.version)
        } else {
            (&*part.group, &*part.version)
        };
        let id = builtins().kind(group, version, &part.kind)?;
        builtins().types.get(id).name.as_deref().map(str::to_owned)
    });
    kinds.collect()
}

fn gvk(resource: &Resource, kind: &str) -> Value {
    json!([{ "group": &*resource.group, "version": &*resource.version, "kind": kind }])
}

/// `com.example.v1.Foo` for a kind of `example.com`.
fn reversed(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').collect();
    parts.reverse();
    format!("{}.{version}.{kind}", parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let registry = Registry::builtin();
        for resource in registry.all() {
            let path = path(&resource.group, &resource.version);
            let document = document(&registry, &path).unwrap();
            let schemas = document["components"]["schemas"].as_object().unwrap();
            let text = document.to_string();
            for reference in text.split(&format!("\"$ref\":\"{DIALECT_3}")).skip(1) {
                let name = reference.split('"').next().unwrap();
                assert!(schemas.contains_key(name), "{path}: {name}");
            }
        }
    }
}
