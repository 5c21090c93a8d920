// SPDX-License-Identifier: Apache-2.0
//! Looking into an object's metadata.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Reads and writes the metadata of an object.
pub trait Object {
    fn meta(&self) -> Option<&Map<String, Value>>;
    /// The metadata, made if absent.
    fn meta_mut(&mut self) -> &mut Map<String, Value>;

    fn meta_str(&self, field: &str) -> &str {
        self.meta().and_then(|meta| meta.get(field)).and_then(Value::as_str).unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.meta_str("name")
    }

    fn namespace(&self) -> &str {
        self.meta_str("namespace")
    }

    fn uid(&self) -> &str {
        self.meta_str("uid")
    }

    fn is_going(&self) -> bool {
        self.meta().is_some_and(|meta| meta.contains_key("deletionTimestamp"))
    }

    fn finalizers(&self) -> Vec<&str> {
        let list = self.meta().and_then(|meta| meta.get("finalizers")).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn generation(&self) -> i64 {
        self.meta().and_then(|meta| meta.get("generation")).and_then(Value::as_i64).unwrap_or_default()
    }

    fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.meta().and_then(|meta| meta.get("labels")).and_then(Value::as_object);
        labels.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.meta()?.get("annotations")?.get(key)?.as_str()
    }

    fn owner_references(&self) -> &[Value] {
        let list = self.meta().and_then(|meta| meta.get("ownerReferences")).and_then(Value::as_array);
        list.map(Vec::as_slice).unwrap_or_default()
    }

    /// What is found on a way of fields, such as `/spec/nodeName`. [`Value::pointer`] makes a copy of each field's name.
    fn at(&self, way: &str) -> Option<&Value>;

    fn set_meta(&mut self, field: &str, value: impl Into<Value>) {
        self.meta_mut().insert(field.to_owned(), value.into());
    }
}

impl Object for Value {
    fn meta(&self) -> Option<&Map<String, Value>> {
        self.get("metadata")?.as_object()
    }

    fn meta_mut(&mut self) -> &mut Map<String, Value> {
        child_object(as_object(self), "metadata")
    }

    fn at(&self, way: &str) -> Option<&Value> {
        // Byte by byte: for ways this short, searching strings costs more than the fields do.
        if way.bytes().any(|byte| byte == b'~') {
            return self.pointer(way);
        }
        let mut fields =
            way.as_bytes().split(|byte| *byte == b'/').skip(1).filter_map(|field| str::from_utf8(field).ok());
        fields.try_fold(self, |value, field| match value {
            Value::Object(map) => map.get(field),
            Value::Array(list) => list.get(field.parse::<usize>().ok()?),
            _ => None,
        })
    }
}

/// The value as an object; anything else becomes an empty one.
pub fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => {
            *other = Value::Object(Map::new());
            as_object(other)
        }
    }
}

/// The object under a key, made if absent.
pub fn child_object<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    as_object(map.entry(key).or_insert_with(|| Value::Object(Map::new())))
}

/// Sets a field; what is no object becomes one.
pub fn set(value: &mut Value, field: &str, new: impl Into<Value>) {
    as_object(value).insert(field.to_owned(), new.into());
}

/// A time as objects carry it: seconds, UTC.
pub fn time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The string at a pointer, or nothing.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.at(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_go_through_lists_and_odd_names() {
        let object = serde_json::json!({ "a": [{ "b": 1 }], "x.io/y": { "~": "z" } });
        assert_eq!(object.at("/a/0/b"), Some(&1.into()));
        assert_eq!(text(&object, "/x.io~1y/~0"), "z");
        assert_eq!(object.at(""), Some(&object));
        assert_eq!((object.at("/a/1"), object.at("/a/b"), object.at("/a/0/b/c")), (None, None, None));
    }
}
