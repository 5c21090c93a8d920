// SPDX-License-Identifier: Apache-2.0
//! All policies and webhooks of the store, read once after each change.

use serde_json::Value;

use super::{GROUP, cel::Expression};
use crate::{
    admission::list,
    field::Error,
    object::{Object, text},
    server::Inner,
};

const SEEN: [&str; 6] =
    ["object", "oldObject", "request", "namespaceObject", "authorizer", "authorizer.requestResource"];

/// Everything that may change or refuse a write.
#[derive(Debug, Default)]
pub struct Registered {
    pub(super) validating: Vec<Policy>,
    pub(super) mutating: Vec<Policy>,
    pub validating_hooks: Vec<Hook>,
    pub mutating_hooks: Vec<Hook>,
}

/// One webhook of a configuration.
#[derive(Debug)]
pub struct Hook {
    pub name: String,
    pub spec: Value,
    pub conditions: Vec<(String, Expression)>,
}

#[derive(Debug, Default)]
pub(super) struct Policy {
    pub name: String,
    pub constraints: Value,
    pub param_kind: Option<(String, String, String)>,
    /// Whether an error refuses the request.
    pub fails: bool,
    /// Whether it runs again after others have changed the object.
    pub again: bool,
    pub conditions: Vec<(String, Expression)>,
    pub variables: Vec<(String, Expression)>,
    pub checks: Vec<Check>,
    pub mutations: Vec<Expression>,
    pub bindings: Vec<Binding>,
}

#[derive(Debug)]
pub(super) struct Check {
    pub expression: Expression,
    pub message: String,
    pub message_expression: Option<Expression>,
    pub reason: String,
}

#[derive(Debug)]
pub(super) struct Binding {
    pub name: String,
    pub spec: Value,
}

impl Registered {
    /// Whether anything may change objects.
    pub fn mutates(&self) -> bool {
        !self.mutating.is_empty() || !self.mutating_hooks.is_empty()
    }

    /// Whether one policy may have changed what another has seen.
    pub fn has_several_policies(&self) -> bool {
        self.mutating.len() > 1
    }

    pub fn read(server: &Inner) -> Self {
        let policies = |of: &str, bindings: &str| {
            let bindings = list(server, GROUP, bindings, None);
            let read = |object: &Value| {
                let mut policy = Policy::read(object).0;
                let own = bindings.iter().filter(|binding| text(binding, "/spec/policyName") == policy.name);
                policy.bindings = own
                    .map(|one| Binding {
                        name: one.name().to_owned(),
                        spec: one.get("spec").cloned().unwrap_or_default(),
                    })
                    .collect();
                policy
            };
            list(server, GROUP, of, None).iter().map(read).collect()
        };
        let hooks = |of: &str| {
            let configurations = list(server, GROUP, of, None).into_iter();
            configurations
                .flat_map(|one| one.get("webhooks").and_then(Value::as_array).cloned().unwrap_or_default())
                .map(Hook::read)
                .collect()
        };
        Self {
            validating: policies("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
            mutating: policies("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
            validating_hooks: hooks("validatingwebhookconfigurations"),
            mutating_hooks: hooks("mutatingwebhookconfigurations"),
        }
    }
}

impl Hook {
    fn read(spec: Value) -> Self {
        let mut errors = Vec::new();
        let conditions = named(&spec, "/matchConditions", "expression", "", &SEEN, &mut errors);
        Self { name: text(&spec, "/name").to_owned(), conditions, spec }
    }
}

fn items<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten().enumerate()
}

fn compile(source: &str, seen: &[&str], field: String, errors: &mut Vec<Error>) -> Option<Expression> {
    Expression::compile(source, seen).map_err(|why| errors.push(Error::invalid(field, source, why))).ok()
}

/// Expressions with names, such as conditions.
fn named(
    of: &Value,
    pointer: &str,
    key: &str,
    path: &str,
    seen: &[&str],
    errors: &mut Vec<Error>,
) -> Vec<(String, Expression)> {
    let read = |(index, one): (usize, &Value)| {
        let expression = compile(text(one, &format!("/{key}")), seen, format!("{path}[{index}].{key}"), errors)?;
        Some((text(one, "/name").to_owned(), expression))
    };
    items(of, pointer).filter_map(read).collect()
}

impl Policy {
    /// Reads a policy, and says what is wrong with its expressions.
    pub fn read(object: &Value) -> (Self, Vec<Error>) {
        let mut errors = Vec::new();
        let spec = object.get("spec").cloned().unwrap_or_default();
        let mut seen = SEEN.to_vec();
        let param_kind = spec.get("paramKind").filter(|kind| kind.is_object()).map(|kind| {
            let (group, version) =
                text(kind, "/apiVersion").rsplit_once('/').unwrap_or(("", text(kind, "/apiVersion")));
            (group.to_owned(), version.to_owned(), text(kind, "/kind").to_owned())
        });
        if param_kind.is_some() {
            seen.push("params");
        }
        let conditions = named(&spec, "/matchConditions", "expression", "spec.matchConditions", &seen, &mut errors);
        let has_variables = items(&spec, "/variables").next().is_some();
        if has_variables {
            seen.push("variables");
        }
        let variables = named(&spec, "/variables", "expression", "spec.variables", &seen, &mut errors);
        let checks =
            items(&spec, "/validations").filter_map(|(index, one)| check(index, one, &seen, &mut errors)).collect();
        for (index, one) in items(&spec, "/auditAnnotations") {
            let field = format!("spec.auditAnnotations[{index}].valueExpression");
            compile(text(one, "/valueExpression"), &seen, field, &mut errors);
        }
        let mut mutations = Vec::new();
        for (index, one) in items(&spec, "/mutations") {
            let path = format!("spec.mutations[{index}]");
            if text(one, "/patchType") == "JSONPatch" {
                let field = format!("{path}.jsonPatch.expression");
                mutations.extend(compile(text(one, "/jsonPatch/expression"), &seen, field, &mut errors));
            } else {
                let why = "this server applies mutations of the type JSONPatch only";
                errors.push(Error::invalid(format!("{path}.patchType"), text(one, "/patchType"), why));
            }
        }
        let policy = Self {
            name: object.name().to_owned(),
            constraints: spec.get("matchConstraints").cloned().unwrap_or_default(),
            param_kind,
            fails: text(&spec, "/failurePolicy") != "Ignore",
            again: text(&spec, "/reinvocationPolicy") == "IfNeeded",
            conditions,
            variables,
            checks,
            mutations,
            bindings: Vec::new(),
        };
        (policy, errors)
    }
}

fn check(index: usize, one: &Value, seen: &[&str], errors: &mut Vec<Error>) -> Option<Check> {
    let path = format!("spec.validations[{index}]");
    let expression = compile(text(one, "/expression"), seen, format!("{path}.expression"), errors);
    let message_expression = match text(one, "/messageExpression") {
        "" => None,
        source => compile(source, seen, format!("{path}.messageExpression"), errors),
    };
    Some(Check {
        expression: expression?,
        message: text(one, "/message").trim().to_owned(),
        message_expression,
        reason: text(one, "/reason").to_owned(),
    })
}
