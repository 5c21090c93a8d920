// SPDX-License-Identifier: Apache-2.0
//! Which labels a selector selects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

pub type Labels = BTreeMap<String, String>;

/// A selector that is not there selects nothing; one that asks for nothing selects everything.
pub fn selects(selector: Option<&LabelSelector>, labels: Option<&Labels>) -> bool {
    selector.is_some_and(|selector| {
        let expressions = selector.match_expressions.as_deref().unwrap_or_default();
        contains(labels, selector.match_labels.as_ref()) && expressions.iter().all(|one| fits(one, labels))
    })
}

/// Whether all of these labels are there. To ask for none is always answered yes.
pub fn contains(labels: Option<&Labels>, asked: Option<&Labels>) -> bool {
    let value = |key: &String| labels.and_then(|labels| labels.get(key));
    asked.into_iter().flatten().all(|(key, wanted)| value(key) == Some(wanted))
}

fn fits(one: &LabelSelectorRequirement, labels: Option<&Labels>) -> bool {
    let value = labels.and_then(|labels| labels.get(&one.key));
    let listed = || value.is_some_and(|value| one.values.as_deref().unwrap_or_default().contains(value));
    match one.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_ask_for_all_of_their_parts() {
        let labels: Labels = [("app", "a"), ("tier", "web")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let cases = [
            (json!({}), true),
            (json!({ "matchLabels": { "app": "a" } }), true),
            (json!({ "matchLabels": { "app": "b" } }), false),
            (json!({ "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["db", "web"] }] }), true),
            (json!({ "matchExpressions": [{ "key": "tier", "operator": "NotIn", "values": ["web"] }] }), false),
            (json!({ "matchExpressions": [{ "key": "none", "operator": "NotIn", "values": ["web"] }] }), true),
            (json!({ "matchExpressions": [{ "key": "none", "operator": "Exists" }] }), false),
            (
                json!({ "matchLabels": { "app": "a" },
                     "matchExpressions": [{ "key": "none", "operator": "DoesNotExist" }] }),
                true,
            ),
        ];
        for (selector, expected) in cases {
            let parsed: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(selects(Some(&parsed), Some(&labels)), expected, "{selector}");
        }
        assert!(!selects(None, Some(&labels)));
    }
}
