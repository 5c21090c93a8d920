// SPDX-License-Identifier: Apache-2.0
//! Values of custom resources as rules see them: their schema says what they are.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use kube_cel::cel::{
    Context, ExecutionError, Program, ResolveResult, Value as Cel,
    extractors::This,
    objects::{Key, Map},
};
use serde_json::Value;

use crate::admission::policy::cel::Variables;

/// Names that stand for types.
const TYPES: [&str; 10] = ["string", "int", "uint", "double", "bool", "bytes", "list", "map", "null_type", "type"];

/// Variables that every rule has: the types, by their names.
pub fn variables() -> Variables {
    let mut variables = Variables::new();
    for name in TYPES {
        variables.set(name, Cel::String(Arc::new(format!("type {name}"))));
    }
    variables
}

/// What the evaluator lacks or does otherwise than the real server.
pub fn register(root: &mut Context<'static>) {
    // Texts are as long as they have characters.
    root.add_function("size", |This(value): This<Cel>| -> ResolveResult {
        let size = match &value {
            Cel::String(text) => text.chars().count(),
            Cel::Bytes(bytes) => bytes.len(),
            Cel::List(list) => list.len(),
            Cel::Map(map) => map.map.len(),
            _ => return Err(ExecutionError::NoSuchOverload),
        };
        Ok(Cel::Int(i64::try_from(size).unwrap_or(i64::MAX)))
    });
    // What is a span of time already stays one.
    root.add_function("duration", |value: Cel| -> ResolveResult {
        if matches!(value, Cel::String(_)) { plain("duration(x)", value) } else { Ok(value) }
    });
    root.add_function("timestamp", |value: Cel| -> ResolveResult {
        if matches!(value, Cel::String(_)) { plain("timestamp(x)", value) } else { Ok(value) }
    });
    root.add_function("type", |value: Cel| -> ResolveResult {
        let name = match value {
            Cel::Int(_) => "int",
            Cel::UInt(_) => "uint",
            Cel::Float(_) => "double",
            Cel::String(_) => "string",
            Cel::Bytes(_) => "bytes",
            Cel::Bool(_) => "bool",
            Cel::List(_) => "list",
            Cel::Map(_) => "map",
            _ => "null_type",
        };
        Ok(Cel::String(Arc::new(format!("type {name}"))))
    });
}

/// Evaluates with nothing but what the evaluator itself has.
fn plain(source: &str, x: Cel) -> ResolveResult {
    static PLAIN: LazyLock<Context<'static>> = LazyLock::new(Context::default);
    let program = Program::compile(source).map_err(|error| ExecutionError::function_error(source, error))?;
    let mut scope = PLAIN.new_inner_scope();
    scope.add_variable_from_value("x", x);
    program.execute(&scope)
}

/// The type of a schema, for messages.
pub fn type_name(schema: &Value) -> &str {
    schema.get("type").and_then(Value::as_str).unwrap_or("")
}

/// A value of a schema. Of the metadata at the root only the names can be seen.
pub fn from_json(value: &Value, schema: &Value, root: bool) -> Cel {
    let text = |field: &str| schema.get(field).and_then(Value::as_str).unwrap_or_default();
    match value {
        Value::Object(map) => object(map, schema, root),
        Value::Array(list) => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            let mut list: Vec<Cel> = list.iter().map(|item| from_json(item, items, false)).collect();
            if text("x-kubernetes-list-type") == "set" {
                // Sets are equal whatever their order.
                list.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            }
            Cel::List(Arc::new(list))
        }
        Value::Number(number) if text("type") == "number" => Cel::Float(number.as_f64().unwrap_or_default()),
        Value::Number(number) => match number.as_i64() {
            Some(value) => Cel::Int(value),
            None => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(written) => string(written, text("format")),
        Value::Bool(value) => Cel::Bool(*value),
        Value::Null => Cel::Null,
    }
}

fn object(map: &serde_json::Map<String, Value>, schema: &Value, root: bool) -> Cel {
    let properties = schema.get("properties").and_then(Value::as_object);
    let additional = schema.get("additionalProperties").filter(|one| one.is_object());
    let whole = root || schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    let mut fields: HashMap<Key, Cel> = HashMap::new();
    for (name, value) in map {
        let below = properties.and_then(|known| known.get(name)).or(additional).unwrap_or(&Value::Null);
        let seen = match value {
            Value::Object(metadata) if whole && name == "metadata" => {
                let names = ["name", "generateName"];
                let kept = metadata.iter().filter(|(field, _)| names.contains(&field.as_str()));
                let kept = kept.map(|(field, value)| (field.clone(), value.clone())).collect();
                from_json(&Value::Object(kept), &Value::Null, false)
            }
            value => from_json(value, below, false),
        };
        // Fields have names of CEL, keys of maps are texts.
        let key = if additional.is_some() { name.clone() } else { escaped(name) };
        // A word of the language is understood as it is, too.
        if is_reserved(name) {
            fields.insert(Key::String(Arc::new(name.clone())), seen.clone());
        }
        fields.insert(Key::String(Arc::new(key)), seen);
    }
    Cel::Map(Map { map: Arc::new(fields) })
}

fn string(written: &str, format: &str) -> Cel {
    let text = |text: String| Cel::String(Arc::new(text));
    let read = |how: &str, written: String| plain(how, text(written.clone())).unwrap_or_else(|_| text(written));
    match format {
        "duration" => read("duration(x)", written.to_owned()),
        "date-time" => read("timestamp(x)", written.to_owned()),
        "date" => read("timestamp(x)", format!("{written}T00:00:00Z")),
        "byte" => BASE64_STANDARD
            .decode(written)
            .map_or_else(|_| text(written.to_owned()), |bytes| Cel::Bytes(Arc::new(bytes))),
        _ => text(written.to_owned()),
    }
}

/// Whether a name is a word of the language.
pub fn is_reserved(name: &str) -> bool {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    RESERVED.contains(&name)
}

/// The name of a field in an expression.
pub fn escaped(name: &str) -> String {
    if is_reserved(name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}
