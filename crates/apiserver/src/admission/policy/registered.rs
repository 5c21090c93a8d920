// SPDX-License-Identifier: Apache-2.0
//! All policies and webhooks of the store, read once after each change.

use serde_json::Value;

use super::{GROUP, cel::Expression};
use crate::{
    admission::list,
    object::{Object, text},
    server::Inner,
};

/// What every expression can see.
pub(super) const SEEN: [&str; 6] =
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
                let mut policy = Policy::read(object);
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
        Self { name: text(&spec, "/name").to_owned(), conditions: named(&spec, "/matchConditions", &SEEN), spec }
    }
}

fn items<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Expressions with names, such as conditions.
fn named(of: &Value, pointer: &str, seen: &[&str]) -> Vec<(String, Expression)> {
    let read = |one| Some((text(one, "/name").to_owned(), compile(one, "/expression", seen)?));
    items(of, pointer).filter_map(read).collect()
}

/// What cannot be read was refused when it came.
fn compile(of: &Value, pointer: &str, seen: &[&str]) -> Option<Expression> {
    match text(of, pointer) {
        "" => None,
        source => Expression::compile(source, seen).ok(),
    }
}

/// The group, version and kind of the parameters.
pub(super) fn param_kind(spec: &Value) -> Option<(String, String, String)> {
    let kind = spec.get("paramKind").filter(|kind| kind.is_object())?;
    let version = text(kind, "/apiVersion");
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    Some((group.to_owned(), version.to_owned(), text(kind, "/kind").to_owned()))
}

impl Policy {
    fn read(object: &Value) -> Self {
        let spec = object.get("spec").cloned().unwrap_or_default();
        let param_kind = param_kind(&spec);
        let seen: Vec<&str> = SEEN.into_iter().chain(["params", "variables"]).collect();
        Self {
            name: object.name().to_owned(),
            constraints: spec.get("matchConstraints").cloned().unwrap_or_default(),
            param_kind,
            fails: text(&spec, "/failurePolicy") != "Ignore",
            again: text(&spec, "/reinvocationPolicy") == "IfNeeded",
            conditions: named(&spec, "/matchConditions", &seen),
            variables: named(&spec, "/variables", &seen),
            checks: items(&spec, "/validations").filter_map(|one| Check::read(one, &seen)).collect(),
            mutations: items(&spec, "/mutations")
                .filter_map(|one| compile(one, "/jsonPatch/expression", &seen))
                .collect(),
            bindings: Vec::new(),
        }
    }
}

impl Check {
    fn read(one: &Value, seen: &[&str]) -> Option<Self> {
        Some(Self {
            expression: compile(one, "/expression", seen)?,
            message: text(one, "/message").trim().to_owned(),
            message_expression: compile(one, "/messageExpression", seen),
            reason: text(one, "/reason").to_owned(),
        })
    }
}
