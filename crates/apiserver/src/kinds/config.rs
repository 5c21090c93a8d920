// SPDX-License-Identifier: Apache-2.0
//! ConfigMaps and Secrets.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::{place::Place, values::config_key};
use crate::{
    field::Error,
    object::{Object, text},
};

/// Keys and values together.
const MOST_BYTES: usize = 1024 * 1024;
const FROZEN: &str = "field is immutable when `immutable` is set";

pub fn config_map(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let (data, binary) = (root.field("data"), root.field("binaryData"));
    let mut size = 0;
    for (key, value) in data.map() {
        let place = data.key(key);
        errors.extend(config_key(key).into_iter().map(|why| place.invalid_as(key, why)));
        if binary.value().get(key).is_some() {
            errors.push(place.invalid_as(key, "duplicate of key present in binaryData"));
        }
        size += value.as_str().unwrap_or_default().len();
    }
    for (key, value) in binary.map() {
        errors.extend(config_key(key).into_iter().map(|why| binary.key(key).invalid_as(key, why)));
        size += decoded(value).len();
    }
    if size > MOST_BYTES {
        errors.push(Error::too_long("", MOST_BYTES));
    }
    errors
}

fn decoded(value: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default()
}

/// An object that says that it is immutable stays as it is.
fn frozen(new: &Value, old: &Value, fields: &[&str]) -> Vec<Error> {
    let set = |object: &Value| object.get("immutable").and_then(Value::as_bool) == Some(true);
    if !set(old) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    if !set(new) {
        errors.push(Error::forbidden("immutable", FROZEN));
    }
    for field in fields {
        if new.get(*field) != old.get(*field) {
            errors.push(Error::forbidden(*field, FROZEN));
        }
    }
    errors
}

pub fn config_map_update(new: &Value, old: &Value) -> Vec<Error> {
    frozen(new, old, &["data", "binaryData"])
}

pub fn secret(object: &Value) -> Vec<Error> {
    const ACCOUNT: &str = "kubernetes.io/service-account.name";
    let mut errors = Vec::new();
    let root = Place::root(object);
    let data = root.field("data");
    let mut size = 0;
    for (key, value) in data.map() {
        errors.extend(config_key(key).into_iter().map(|why| data.key(key).invalid_as(key, why)));
        size += decoded(value).len();
    }
    if size > MOST_BYTES {
        errors.push(Error::too_long("data", MOST_BYTES));
    }
    let mut need = |key: &str| {
        let absent = !data.key(key).exists();
        if absent {
            errors.push(data.key(key).required(""));
        }
        !absent
    };
    match text(object, "/type") {
        "kubernetes.io/service-account-token" if object.annotation(ACCOUNT).unwrap_or_default().is_empty() => {
            errors.push(Error::required(format!("metadata.annotations[{ACCOUNT}]"), ""));
        }
        "kubernetes.io/dockercfg" if need(".dockercfg") => document(&data.key(".dockercfg"), &mut errors),
        "kubernetes.io/dockerconfigjson" if need(".dockerconfigjson") => {
            document(&data.key(".dockerconfigjson"), &mut errors);
        }
        "kubernetes.io/basic-auth" if !data.key("username").exists() && !data.key("password").exists() => {
            need("username");
            need("password");
        }
        "kubernetes.io/ssh-auth" => {
            let empty = decoded(data.key("ssh-privatekey").value()).is_empty();
            if empty {
                errors.push(data.key("ssh-privatekey").required(""));
            }
        }
        "kubernetes.io/tls" => {
            need("tls.crt");
            need("tls.key");
        }
        _ => {}
    }
    errors
}

/// The contents of a Secret are not for messages.
fn document(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let bytes = decoded(at.value());
    if let Err(error) = crate::json::parse(&bytes) {
        errors.push(at.invalid_as("<secret contents redacted>", crate::decode::syntax_error(&bytes, &error)));
    }
}

pub fn secret_update(new: &Value, old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let (root, before) = (Place::root(new), Place::root(old));
    root.field("type").fixed(&before.field("type"), &mut errors);
    errors.extend(frozen(new, old, &["data"]));
    errors
}

/// A Secret without a word about its type keeps it.
pub fn secret_prepare_update(new: &mut Value, old: &Value) {
    if text(new, "/type").is_empty()
        && let Some(kind) = old.get("type")
    {
        crate::object::as_object(new).insert("type".into(), kind.clone());
    }
}
