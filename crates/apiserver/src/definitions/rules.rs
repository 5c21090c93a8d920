// SPDX-License-Identifier: Apache-2.0
//! What must hold for the rules of a schema before they are ever evaluated.

use serde_json::{Map, Value};

use crate::{field::Error, kinds::place::Place, registry::rules::compile};

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

pub fn check(root: &Place<'_, '_>, errors: &mut Vec<Error>) {
    walk(root, None, true, errors);
}

/// `lost` is where an old value can no longer be told from another.
fn walk(at: &Place<'_, '_>, lost: Option<&str>, root: bool, errors: &mut Vec<Error>) {
    for rule in at.field("x-kubernetes-validations").items() {
        self::rule(&rule, at.value(), lost, root, errors);
    }
    let properties = at.field("properties");
    for (name, _) in properties.map() {
        walk(&properties.key(name), lost, false, errors);
    }
    if at.field("additionalProperties").value().is_object() {
        let path = at.path();
        let apart = at.field("x-kubernetes-map-type").text() == "atomic";
        walk(&at.field("additionalProperties"), lost.or(apart.then_some(path.as_str())), false, errors);
    }
    if at.field("items").exists() {
        let path = at.path();
        let apart = at.field("x-kubernetes-list-type").text() != "map";
        walk(&at.field("items"), lost.or(apart.then_some(path.as_str())), false, errors);
    }
}

fn rule(at: &Place<'_, '_>, schema: &Value, lost: Option<&str>, root: bool, errors: &mut Vec<Error>) {
    let (rule, message) = (at.field("rule"), at.field("message"));
    let reason = at.field("reason");
    if reason.exists() && !REASONS.contains(&reason.text()) {
        errors.push(reason.not_supported(&REASONS));
    }
    if message.exists() && message.text().trim().is_empty() && !message.text().is_empty() {
        errors.push(message.invalid("must be non-empty if specified"));
    } else if message.text().trim().contains('\n') {
        errors.push(message.invalid("must not contain line breaks"));
    }
    if rule.text().trim().is_empty() {
        errors.push(rule.required("rule is not specified"));
        return;
    }
    if rule.text().trim().contains('\n') && message.is_empty() {
        errors.push(message.required("message must be specified if rule contains line breaks"));
    }
    let path = at.field("fieldPath");
    if !path.is_empty() && !leads(path.text(), schema) {
        errors.push(path.invalid("must be a valid path"));
    }
    if let Some(lost) = lost.filter(|_| compile::is_transition(rule.text())) {
        errors.push(
            rule.invalid(format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {lost}")),
        );
    }
    let schema = with_names(schema, root);
    expression(&rule, at, &schema, ("bool", "cel expression must evaluate to a bool"), errors);
    let text = at.field("messageExpression");
    if text.exists() {
        expression(&text, at, &schema, ("string", "messageExpression must evaluate to a string"), errors);
    }
}

fn expression(at: &Place<'_, '_>, rule: &Place<'_, '_>, schema: &Value, kind: (&str, &str), errors: &mut Vec<Error>) {
    let outcome = compile::expression(at.text().trim());
    let outcome = outcome.and_then(|expression| compile::check_types(&expression, schema, kind.0, kind.1));
    if let Err(why) = outcome {
        errors.push(at.invalid_raw(&shown(rule), &why));
    }
}

/// A rule in the real server's inner form. Go writes some characters as numbers.
fn shown(rule: &Place<'_, '_>) -> String {
    let json = |field: &str| {
        let text = Value::from(rule.field(field).text()).to_string();
        text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
    };
    let old = rule.field("optionalOldSelf").value();
    let reason = rule.field("reason").value();
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{reason},\"FieldPath\":{},\"OptionalOldSelf\":{old}}}",
        json("rule"),
        json("message"),
        json("messageExpression"),
        json("fieldPath"),
    )
}

/// Whether a path like `.spec.x` leads to a field.
fn leads(path: &str, schema: &Value) -> bool {
    let Some(rest) = path.strip_prefix('.') else { return path.starts_with('[') };
    rest.split(['.', '['])
        .map(|step| step.trim_end_matches(']').trim_matches('\''))
        .try_fold(schema, |schema, step| {
            schema.get("properties").and_then(|known| known.get(step)).or_else(|| schema.get("additionalProperties"))
        })
        .is_some()
}

/// At the root, and in whole objects inside, rules see what every object has.
fn with_names(schema: &Value, root: bool) -> Value {
    let mut schema = schema.clone();
    let embedded = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    if !root && !embedded {
        return schema;
    }
    let text = || serde_json::json!({ "type": "string" });
    let names: Map<String, Value> =
        [("name", text()), ("generateName", text())].map(|(k, v)| (k.to_owned(), v)).into_iter().collect();
    let metadata = serde_json::json!({ "type": "object", "properties": names });
    let properties = crate::object::child_object(crate::object::as_object(&mut schema), "properties");
    properties.insert("metadata".into(), metadata);
    properties.insert("apiVersion".into(), text());
    properties.insert("kind".into(), text());
    schema
}
