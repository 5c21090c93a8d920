// SPDX-License-Identifier: Apache-2.0
//! Bodies in protocol buffers: what newer Go clients send for built-in kinds unless they are told otherwise.
//!
//! Only requests are read in this form; answers are JSON, which every such client accepts too.

use std::{
    collections::{BTreeMap, HashMap},
    sync::OnceLock,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use crate::{
    builtin::builtins,
    schema::{Schema, Shape},
};

/// Every such body begins with this.
const MAGIC: &[u8] = b"k8s\0";
/// Messages inside each other, at most; as deep as any kind goes and then some.
const DEEPEST: usize = 64;

type Numbers = HashMap<String, BTreeMap<u64, String>>;

/// Which field has which number, by the definition of the type.
fn numbers() -> &'static Numbers {
    static TABLE: OnceLock<Numbers> = OnceLock::new();
    TABLE.get_or_init(|| {
        // A table that cannot be read is a broken build; a test of this module finds it.
        #[derive(Default, serde::Deserialize)]
        struct Table {
            types: HashMap<String, BTreeMap<String, u64>>,
        }
        let Table { types } = serde_json::from_str(include_str!("../builtin/numbers.json")).unwrap_or_default();
        let turned = |fields: BTreeMap<String, u64>| fields.into_iter().map(|(name, number)| (number, name)).collect();
        types.into_iter().map(|(name, fields)| (name, turned(fields))).collect()
    })
}

/// Reads a body into the JSON that means the same.
pub fn read(body: &[u8]) -> Result<Value, String> {
    let envelope = body.strip_prefix(MAGIC).ok_or("provided data does not appear to be a protobuf message")?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), None);
    for field in Fields(envelope) {
        match field? {
            (1, Wire::Bytes(meta)) => {
                for field in Fields(meta) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = string(text)?,
                        (2, Wire::Bytes(text)) => kind = string(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = Some(bytes),
            _ => {}
        }
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    // Options belong to every group and are listed with none.
    let meta = || builtins().named(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}"));
    let id = builtins().kind(group, version, &kind).or_else(meta);
    let id = id.ok_or_else(|| format!("no kind {kind:?} is registered for version {api_version:?}"))?;
    let schema = builtins().types.at(id);
    let mut object = message(raw.unwrap_or_default(), schema, definition(schema), 0)?;
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    Ok(Value::Object(object))
}

fn definition<'a>(schema: Schema<'a>) -> &'a str {
    schema.ty().name.as_deref().unwrap_or_default()
}

/// The fields of a message of the named type, in an object of the schema. The two differ where Go embeds one type in
/// another: on the wire that is a message of its own, in JSON it is not.
fn message(bytes: &[u8], schema: Schema<'_>, name: &str, depth: usize) -> Result<Map<String, Value>, String> {
    if depth > DEEPEST {
        return Err("the message is nested too deeply".to_owned());
    }
    let mut object = Map::new();
    let Some(fields) = numbers().get(name) else { return Ok(object) };
    for field in Fields(bytes) {
        let (number, wire) = field?;
        let Some(key) = fields.get(&number) else { continue };
        if let (Some(embedded), Wire::Bytes(bytes)) = (key.strip_prefix('+'), &wire) {
            object.extend(message(bytes, schema, embedded, depth + 1)?);
            continue;
        }
        let Some((_, of)) = schema.field(key) else { continue };
        match of.shape() {
            Shape::List(list) => {
                let item = value(wire, schema.at(list.items), depth)?;
                match object.entry(key.clone()).or_insert_with(|| json!([])) {
                    Value::Array(items) => items.push(item),
                    other => *other = json!([item]),
                }
            }
            Shape::Map { values, .. } if !matches!(definition(of), FIELDS | RAW) => {
                let (name, item) = entry(wire, schema.at(*values), depth)?;
                if let Value::Object(map) = object.entry(key.clone()).or_insert_with(|| json!({})) {
                    map.insert(name, item);
                }
            }
            _ => {
                object.insert(key.clone(), value(wire, of, depth)?);
            }
        }
    }
    Ok(object)
}

const FIELDS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// One value of a type.
fn value(wire: Wire<'_>, schema: Schema<'_>, depth: usize) -> Result<Value, String> {
    let short = definition(schema).rsplit('.').next().unwrap_or_default();
    match (wire, schema.shape()) {
        (Wire::Bytes(bytes), _) if special(short) => special_value(short, bytes, schema, depth),
        (Wire::Bytes(bytes), Shape::String { format }) if format.as_deref() == Some("byte") => {
            Ok(BASE64_STANDARD.encode(bytes).into())
        }
        (Wire::Bytes(bytes), Shape::String { .. }) => Ok(string(bytes)?.into()),
        (Wire::Bytes(bytes), Shape::Struct(_)) => {
            Ok(Value::Object(message(bytes, schema, definition(schema), depth + 1)?))
        }
        (Wire::Bytes(bytes), Shape::List(list)) => {
            // A named list is a message with one repeated field.
            let items = Fields(bytes).map(|field| value(field?.1, schema.at(list.items), depth + 1));
            items.collect::<Result<Vec<Value>, String>>().map(Value::Array)
        }
        (Wire::Bytes(bytes), Shape::Any) => raw_json(bytes),
        (Wire::Number(number), Shape::Boolean) => Ok((number != 0).into()),
        // Negative numbers are written as large ones.
        (Wire::Number(number), _) => Ok((number as i64).into()),
        (Wire::Fixed(bits), _) => {
            Ok(serde_json::Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number))
        }
        (Wire::Bytes(_), _) => Err(format!("unexpected bytes for {}", definition(schema))),
    }
}

fn special(name: &str) -> bool {
    matches!(name, "Time" | "MicroTime" | "Quantity" | "IntOrString" | "RawExtension" | "FieldsV1" | "JSON")
        || name.starts_with("JSONSchemaPropsOr")
}

/// Types that are one thing in JSON and another on the wire.
fn special_value(name: &str, bytes: &[u8], schema: Schema<'_>, depth: usize) -> Result<Value, String> {
    let mut parts: BTreeMap<u64, Wire<'_>> = BTreeMap::new();
    let mut repeated = Vec::new();
    for field in Fields(bytes) {
        let (number, wire) = field?;
        repeated.push((number, wire));
        parts.insert(number, wire);
    }
    let number = |field: u64| match parts.get(&field) {
        Some(Wire::Number(number)) => *number as i64,
        _ => 0,
    };
    let blob = |field: u64| match parts.get(&field) {
        Some(Wire::Bytes(bytes)) => *bytes,
        _ => &[],
    };
    match name {
        "Time" | "MicroTime" if parts.is_empty() => Ok(Value::Null),
        "Time" | "MicroTime" => {
            let nanos = i32::try_from(number(2)).unwrap_or_default();
            let time = jiff::Timestamp::new(number(1), nanos).map_err(|error| error.to_string())?;
            let format = if name == "Time" { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S.%6fZ" };
            Ok(time.strftime(format).to_string().into())
        }
        "Quantity" => Ok(string(blob(1))?.into()),
        "IntOrString" if number(1) == 0 => Ok(number(2).into()),
        "IntOrString" => Ok(string(blob(3))?.into()),
        "RawExtension" | "FieldsV1" | "JSON" => raw_json(blob(1)),
        "JSONSchemaPropsOrBool" => match parts.get(&2) {
            Some(Wire::Bytes(schema_bytes)) => nested_schema(schema_bytes, schema, depth),
            _ => Ok((number(1) != 0).into()),
        },
        // One schema, or a list of them or of texts.
        _ => match parts.get(&1) {
            Some(Wire::Bytes(schema_bytes)) => nested_schema(schema_bytes, schema, depth),
            _ => {
                let items = repeated.iter().filter(|(number, _)| *number == 2).map(|(_, wire)| match wire {
                    Wire::Bytes(bytes) if name.ends_with("StringArray") => string(bytes).map(Value::from),
                    Wire::Bytes(bytes) => nested_schema(bytes, schema, depth),
                    _ => Err("unexpected number".to_owned()),
                });
                items.collect::<Result<Vec<Value>, String>>().map(Value::Array)
            }
        },
    }
}

fn nested_schema(bytes: &[u8], near: Schema<'_>, depth: usize) -> Result<Value, String> {
    const PROPS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let id = builtins().named(PROPS).ok_or("there is no JSONSchemaProps")?;
    message(bytes, near.at(id), PROPS, depth + 1).map(Value::Object)
}

fn raw_json(bytes: &[u8]) -> Result<Value, String> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    crate::json::parse(bytes).map(|read| read.value).map_err(|error| error.to_string())
}

/// One entry of a map: a message of a key and a value.
fn entry(wire: Wire<'_>, schema: Schema<'_>, depth: usize) -> Result<(String, Value), String> {
    let Wire::Bytes(bytes) = wire else { return Err("an entry of a map is not a message".to_owned()) };
    let (mut key, mut item) = (String::new(), None);
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Bytes(text)) => key = string(text)?,
            (2, wire) => item = Some(value(wire, schema, depth + 1)?),
            _ => {}
        }
    }
    // What is empty is not written.
    let empty = || match schema.shape() {
        Shape::String { .. } => Value::from(""),
        _ => Value::Null,
    };
    Ok((key, item.unwrap_or_else(empty)))
}

fn string(bytes: &[u8]) -> Result<String, String> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| format!("a text is not UTF-8: {error}"))
}

/// A value as it is on the wire.
#[derive(Debug, Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or("unexpected EOF")?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("integer overflow".to_owned())
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let length = usize::try_from(length).map_err(|error| error.to_string())?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or("unexpected EOF")?;
        self.0 = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u64, Wire<'a>), String> {
        let tag = self.varint()?;
        let fixed = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Fixed(fixed(self.take(8)?)),
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Number(fixed(self.take(4)?)),
            other => return Err(format!("illegal wire type {other}")),
        };
        Ok((tag >> 3, wire))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Wire<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            // Nothing sensible can follow.
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut all = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        all.extend(bytes);
        all
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &meta), field(2, raw)].concat()
    }

    #[test]
    fn a_secret_is_read() {
        let meta = [field(1, b"a"), field(3, b"ns"), field(11, &[field(1, b"x"), field(2, b"y")].concat())].concat();
        let data = [field(1, b"k"), field(2, b"v")].concat();
        let raw = [field(1, &meta), field(2, &data), field(3, b"Opaque")].concat();
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": { "k": "dg==" },
            "metadata": { "name": "a", "namespace": "ns", "labels": { "x": "y" } },
        });
        assert_eq!(read(&body("v1", "Secret", &raw)).unwrap(), expected);
    }

    #[test]
    fn embedded_messages_are_flat_in_json() {
        let secret = field(6, &field(1, b"s"));
        let volume = [field(1, b"v"), field(2, &secret)].concat();
        let raw = field(2, &field(1, &volume));
        let pod = read(&body("v1", "Pod", &raw)).unwrap();
        assert_eq!(pod["spec"]["volumes"], json!([{ "name": "v", "secret": { "secretName": "s" } }]));
    }

    #[test]
    fn options_are_of_every_group() {
        let options = read(&body("v1", "DeleteOptions", &[0x08, 0x00])).unwrap();
        assert_eq!(options["gracePeriodSeconds"], 0);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(read(b"{}").is_err());
        assert!(read(b"k8s\0\xff\xff").is_err());
        assert!(read(&body("v1", "Tent", b"")).unwrap_err().contains("no kind"));
        assert!(read(&body("v1", "Pod", &[0x0a, 0x7f])).is_err());
    }

    #[test]
    fn every_type_of_the_table_has_numbers() {
        let known = numbers();
        let kinds = builtins().kinds();
        for (kind, id) in kinds {
            let name = builtins().types.get(id).name.clone().unwrap_or_default();
            assert!(known.contains_key(&*name), "{kind:?} {name}");
        }
    }
}
