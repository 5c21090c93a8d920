// SPDX-License-Identifier: Apache-2.0
//! Whether a live object already holds everything we want, so that nothing need be written.

use bivouac_core::quantity::Quantity;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// True when `live` has every field of `wanted` with the same meaning. Extra fields of others do not matter.
pub fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(key, wish)| match live.get(key) {
            Some(have) if key == "ownerReferences" || key == "finalizers" => each_is_among(have, wish),
            Some(have) => contains(have, wish),
            None => is_empty(wish),
        }),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(have, wish)| contains(have, wish))
        }
        _ => live == wanted || same_quantity(live, wanted),
    }
}

/// Lists that several writers share by key: ours must be among them.
fn each_is_among(live: &Value, wanted: &Value) -> bool {
    let (Some(live), Some(wanted)) = (live.as_array(), wanted.as_array()) else { return live == wanted };
    wanted.iter().all(|wish| live.iter().any(|have| contains(have, wish)))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

/// The server writes quantities in canonical form: `1000m` comes back as `1`.
fn same_quantity(live: &Value, wanted: &Value) -> bool {
    match (as_quantity(live), as_quantity(wanted)) {
        (Some(live), Some(wanted)) => live == wanted,
        _ => false,
    }
}

fn as_quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// A short hash of a JSON value that does not depend on the order of keys.
pub fn fingerprint(value: &Value) -> String {
    let mut hasher = Sha256::new();
    feed(&mut hasher, value);
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<_> = fields.iter().collect();
            keys.sort_by_key(|(key, _)| key.as_str());
            hasher.update(b"{");
            for (key, value) in keys {
                hasher.update(Value::from(key.as_str()).to_string());
                feed(hasher, value);
            }
            hasher.update(b"}");
        }
        Value::Array(items) => {
            hasher.update(b"[");
            items.iter().for_each(|item| feed(hasher, item));
            hasher.update(b"]");
        }
        leaf => hasher.update(leaf.to_string() + ","),
    }
}

#[cfg(test)]
mod tests {
    use super::{contains, fingerprint};
    use serde_json::json;

    #[test]
    fn extra_fields_of_others_do_not_matter() {
        assert!(contains(&json!({"a": 1, "b": 2}), &json!({"a": 1})));
        assert!(!contains(&json!({"b": 2}), &json!({"a": 1})));
        assert!(!contains(&json!({"a": {"x": 1}}), &json!({"a": {"x": 2}})));
    }

    #[test]
    fn lists_are_compared_item_by_item() {
        assert!(contains(&json!([{"a": 1, "z": 0}]), &json!([{"a": 1}])));
        assert!(!contains(&json!([{"a": 1}, {"a": 2}]), &json!([{"a": 1}])));
    }

    #[test]
    fn owner_references_may_have_company() {
        let live = json!({"ownerReferences": [{"uid": "x"}, {"uid": "ours", "kind": "W"}]});
        assert!(contains(&live, &json!({"ownerReferences": [{"uid": "ours"}]})));
        assert!(!contains(&live, &json!({"ownerReferences": [{"uid": "other"}]})));
    }

    #[test]
    fn quantities_are_compared_by_amount() {
        assert!(contains(&json!({"cpu": "1"}), &json!({"cpu": "1000m"})));
        assert!(contains(&json!({"gpu": "4"}), &json!({"gpu": 4})));
        assert!(!contains(&json!({"cpu": "1"}), &json!({"cpu": "1001m"})));
    }

    #[test]
    fn an_absent_field_holds_an_empty_wish() {
        assert!(contains(&json!({}), &json!({"podSelector": {}, "list": [], "none": null})));
        assert!(!contains(&json!({}), &json!({"list": [1]})));
    }

    #[test]
    fn fingerprints_ignore_the_order_of_keys_and_nothing_else() {
        let one = fingerprint(&serde_json::from_str(r#"{"a":1,"b":[1,2]}"#).unwrap());
        let two = fingerprint(&serde_json::from_str(r#"{"b":[1,2],"a":1}"#).unwrap());
        assert_eq!(one, two);
        for other in
            [json!({"a":1,"b":[2,1]}), json!({"a":"1","b":[1,2]}), json!({"a":1,"b":[[1],2]}), json!({"a":1,"b":[12]})]
        {
            assert_ne!(one, fingerprint(&other), "{other}");
        }
    }
}
