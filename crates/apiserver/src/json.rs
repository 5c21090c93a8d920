// SPDX-License-Identifier: Apache-2.0
//! JSON as the real server reads it: numbers that are whole become integers, and a field that comes twice is noticed.

use std::{
    cell::RefCell,
    collections::HashMap,
    fmt::{self, Write},
};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A read document.
#[derive(Debug)]
pub struct Document {
    pub value: Value,
    /// Paths of fields that came more than once; the last one counts.
    pub duplicates: Vec<String>,
}

/// Reads JSON.
pub fn parse(bytes: &[u8]) -> Result<Document, serde_json::Error> {
    let notes = RefCell::new(Notes::default());
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Seed(&notes).deserialize(&mut deserializer)?;
    deserializer.end()?;
    // Paths cost time, so they are only followed where something came twice.
    let duplicates = if notes.into_inner().repeats { follow(bytes).duplicates } else { Vec::new() };
    Ok(Document { value, duplicates })
}

/// Where each field comes in a document: its path, and a number that grows from start to end. A field that comes twice
/// has the place of the second time.
pub fn places(bytes: &[u8]) -> HashMap<String, usize> {
    follow(bytes).places
}

fn follow(bytes: &[u8]) -> Notes {
    let notes = RefCell::new(Notes { follows: true, ..Notes::default() });
    let _ = Seed(&notes).deserialize(&mut serde_json::Deserializer::from_slice(bytes));
    notes.into_inner()
}

#[derive(Default)]
struct Notes {
    /// Whether any field came more than once.
    repeats: bool,
    /// Whether the rest is wanted.
    follows: bool,
    path: String,
    fields: usize,
    places: HashMap<String, usize>,
    duplicates: Vec<String>,
}

struct Seed<'a>(&'a RefCell<Notes>);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or_else(|_| float(value as f64), Value::from))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        if value.is_finite() { Ok(float(value)) } else { Err(E::custom("number out of range")) }
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let mark = self.enter("", format_args!("[{}]", list.len()));
            let item = seq.next_element_seed(Seed(self.0))?;
            self.leave(mark);
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let mark = self.enter(".", format_args!("{key}"));
            self.mark_place();
            let value = access.next_value_seed(Seed(self.0))?;
            if map.insert(key, value).is_some() {
                let notes = &mut *self.0.borrow_mut();
                notes.repeats = true;
                if notes.follows && !notes.duplicates.contains(&notes.path) {
                    notes.duplicates.push(notes.path.clone());
                }
            }
            self.leave(mark);
        }
        Ok(Value::Object(map))
    }
}

impl Seed<'_> {
    /// Goes one step down and says how long the path was.
    fn enter(&self, between: &str, step: fmt::Arguments<'_>) -> usize {
        let mut notes = self.0.borrow_mut();
        let mark = notes.path.len();
        if notes.follows {
            let between = if mark == 0 { "" } else { between };
            let _ = write!(notes.path, "{between}{step}");
        }
        mark
    }

    fn mark_place(&self) {
        let notes = &mut *self.0.borrow_mut();
        if notes.follows {
            notes.fields += 1;
            notes.places.insert(notes.path.clone(), notes.fields);
        }
    }

    fn leave(&self, mark: usize) {
        self.0.borrow_mut().path.truncate(mark);
    }
}

/// A whole number is an integer, however it was written: the real server writes `1.0` back as `1`.
fn float(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_named_with_their_path() {
        let read = parse(br#"{"a":{"b":1,"b":2},"l":[{"x":1,"x":1}],"a":3}"#).unwrap();
        assert_eq!(read.duplicates, ["a.b", "l[0].x", "a"]);
        assert_eq!(read.value, serde_json::json!({"a": 3, "l": [{"x": 1}]}));
    }

    #[test]
    fn whole_floats_are_integers() {
        assert_eq!(
            parse(b"[1.0, 1.5, 1e3, 18446744073709551615]").unwrap().value.to_string(),
            "[1,1.5,1000,1.8446744073709552e+19]"
        );
    }
}
