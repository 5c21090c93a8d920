// SPDX-License-Identifier: Apache-2.0
//! The rules of custom resources: conditions in CEL, at any place of a schema.

pub mod compile;
pub mod values;

use std::collections::BTreeMap;

use kube_cel::cel::{Value as Cel, objects::OptionalValue};
use serde_json::Value;

use crate::{
    admission::policy::cel::{Expression, Variables},
    field::{Error, Problem},
    object::text,
    schema::prune::below,
};

/// The rules at one place of a schema and below it.
#[derive(Debug, Default)]
pub struct Rules {
    own: Vec<Rule>,
    schema: Value,
    properties: BTreeMap<String, Rules>,
    values: Option<Box<Rules>>,
    items: Option<Box<Rules>>,
    /// The keys that find an item of a list again.
    keys: Option<Vec<String>>,
}

#[derive(Debug)]
struct Rule {
    condition: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: Problem,
    field_path: String,
    /// The condition looks at the value before.
    transition: bool,
    /// It does so even if there was none.
    optional_old: bool,
}

impl Rules {
    /// Reads the rules of a schema. Those that cannot be read were refused with their definition.
    pub fn read(schema: &Value) -> Self {
        let list = |field: &str| schema.get(field).and_then(Value::as_array).into_iter().flatten();
        let own: Vec<Rule> = list("x-kubernetes-validations").filter_map(Rule::read).collect();
        let child = |schema: &Value| Some(Box::new(Self::read(schema))).filter(|rules| !rules.is_empty());
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let properties = properties.map(|(name, schema)| (name.clone(), Self::read(schema)));
        let map = schema.get("x-kubernetes-list-type").and_then(Value::as_str) == Some("map");
        let keys = list("x-kubernetes-list-map-keys").filter_map(Value::as_str).map(str::to_owned).collect();
        Self {
            schema: if own.is_empty() { Value::Null } else { schema.clone() },
            own,
            properties: properties.filter(|(_, rules)| !rules.is_empty()).collect(),
            values: schema.get("additionalProperties").filter(|one| one.is_object()).and_then(child),
            items: schema.get("items").and_then(child),
            keys: map.then_some(keys),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.properties.is_empty() && self.values.is_none() && self.items.is_none()
    }

    pub fn check(&self, object: &Value, old: Option<&Value>) -> Vec<Error> {
        let mut errors = Vec::new();
        self.walk(object, old, "", &mut errors);
        errors
    }

    fn walk(&self, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<Error>) {
        if value.is_null() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        self.evaluate(value, old, path, errors);
        match value {
            Value::Object(map) => {
                for (name, rules) in &self.properties {
                    if let Some(value) = map.get(name) {
                        rules.walk(value, old.and_then(|old| old.get(name)), &below(path, name), errors);
                    }
                }
                if let Some(rules) = &self.values {
                    for (key, value) in map {
                        rules.walk(value, old.and_then(|old| old.get(key)), &format!("{path}[{key}]"), errors);
                    }
                }
            }
            Value::Array(list) => {
                let Some(rules) = &self.items else { return };
                for (index, item) in list.iter().enumerate() {
                    let before = old.and_then(|old| self.same_item(old, item));
                    rules.walk(item, before, &format!("{path}[{index}]"), errors);
                }
            }
            _ => {}
        }
    }

    /// The item of the old list that the new one takes the place of, if keys tell.
    fn same_item<'a>(&self, old: &'a Value, item: &Value) -> Option<&'a Value> {
        let keys = self.keys.as_ref()?;
        let same = |other: &&Value| keys.iter().all(|key| other.get(key) == item.get(key));
        old.as_array()?.iter().find(same)
    }

    fn evaluate(&self, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<Error>) {
        if self.own.is_empty() {
            return;
        }
        let at_root = path.is_empty();
        let mut variables = values::variables();
        variables.set("self", values::from_json(value, &self.schema, at_root));
        for rule in &self.own {
            match (rule.transition, old) {
                (true, None) if !rule.optional_old => continue,
                // What did not change keeps what it was allowed to be.
                (false, Some(old)) if old == value => continue,
                _ => {}
            }
            let before = old.map(|old| values::from_json(old, &self.schema, at_root));
            variables.set(
                "oldSelf",
                match (rule.optional_old, before) {
                    (false, before) => before.unwrap_or(Cel::Null),
                    (true, Some(before)) => Cel::Opaque(std::sync::Arc::new(OptionalValue::of(before))),
                    (true, None) => Cel::Opaque(std::sync::Arc::new(OptionalValue::none())),
                },
            );
            if let Some(error) = rule.fails(&variables, value, &self.schema, path) {
                errors.push(error);
            }
        }
    }
}

impl Rule {
    fn read(rule: &Value) -> Option<Self> {
        let source = text(rule, "/rule").trim();
        let expression = text(rule, "/messageExpression");
        Some(Self {
            condition: compile::expression(source).ok()?,
            message: text(rule, "/message").trim().to_owned(),
            message_expression: (!expression.is_empty()).then(|| compile::expression(expression).ok()).flatten(),
            reason: match text(rule, "/reason") {
                "FieldValueForbidden" => Problem::Forbidden,
                "FieldValueRequired" => Problem::Required,
                "FieldValueDuplicate" => Problem::Duplicate,
                _ => Problem::Invalid,
            },
            field_path: text(rule, "/fieldPath").to_owned(),
            transition: compile::is_transition(source),
            optional_old: rule.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or_default(),
        })
    }

    fn fails(&self, variables: &Variables, value: &Value, schema: &Value, path: &str) -> Option<Error> {
        let place = if path.is_empty() { "<nil>" } else { path };
        let source = &self.condition.source;
        match self.condition.evaluate(variables) {
            Ok(Cel::Bool(true)) => None,
            Ok(Cel::Bool(false)) => {
                let detail = self.said(variables).unwrap_or_else(|| format!("failed rule: {source}"));
                // Wholes are not shown, nor is what the rule points at.
                let shown = !value.is_object() && !value.is_array() && self.field_path.is_empty();
                Some(Error {
                    problem: self.reason,
                    field: format!("{place}{}", self.field_path),
                    value: shown.then(|| value.clone()),
                    detail,
                })
            }
            Ok(_) => {
                Some(Error::invalid(place, values::type_name(schema), "evaluated to something else than a condition"))
            }
            Err(why) => {
                let rule = if self.message.is_empty() { source.as_str() } else { &self.message };
                Some(Error::invalid(place, values::type_name(schema), format!("{why} evaluating rule: {rule}")))
            }
        }
    }

    /// What the author wants to be said. An expression that gives nothing of use does not count.
    fn said(&self, variables: &Variables) -> Option<String> {
        let computed = self.message_expression.as_ref().and_then(|one| one.evaluate(variables).ok());
        let computed = match computed {
            Some(Cel::String(text)) if !text.trim().is_empty() && !text.contains('\n') => Some(text.to_string()),
            _ => None,
        };
        computed.or_else(|| Some(self.message.clone()).filter(|message| !message.is_empty()))
    }
}
