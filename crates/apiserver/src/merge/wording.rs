// SPDX-License-Identifier: Apache-2.0
//! How the real server prints values. It is written in Go, and its messages carry Go's notation.

use serde_json::{Number, Value};

/// JSON text with the characters that HTML knows escaped, as Go's encoder writes it.
pub fn json(value: &Value) -> String {
    match value {
        Value::Number(number) => self::number(number),
        other => escaped(other.to_string()),
    }
}

/// A text in JSON.
pub fn json_text(text: &str) -> String {
    escaped(serde_json::to_string(text).unwrap_or_default())
}

/// These characters can only be inside strings, so JSON may be treated as a whole.
fn escaped(json: String) -> String {
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return json;
    }
    json.chars().fold(String::with_capacity(json.len() + 16), |mut out, c| {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
        out
    })
}

/// A number without a superfluous fraction; very small and very large ones with an exponent.
pub fn number(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let size = float.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{float:e}");
        return if size >= 1.0 { text.replace('e', "e+") } else { text };
    }
    float.to_string()
}

/// A value inside a field path: `%q` for strings, `%v` for others.
pub fn readable(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(readable).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => fields.iter().map(|(name, value)| format!("{name}={}", readable(value))).collect(),
        other => plain(other),
    }
}

/// Go's `%v`: `map[a:1 b:[x y]]`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => number(value),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// Go's `%#v`, the notation of its source.
pub fn source(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(source).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(name, value)| format!("{}:{}", quoted(name), source(value))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        other => plain(other),
    }
}

/// Go's name of the type that a decoded value has.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Go's `%q`.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
