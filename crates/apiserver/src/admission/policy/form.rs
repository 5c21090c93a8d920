// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a policy, a binding or a webhook that is about to be stored.

use serde_json::Value;

use super::{
    cel::Expression,
    registered::{SEEN, param_kind},
};
use crate::{
    field::Error,
    names,
    object::{Object, text},
};

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn one_of(value: &Value, key: &str, path: &str, known: &[&str]) -> Option<Error> {
    let found = text(value, &format!("/{key}"));
    (!found.is_empty() && !known.contains(&found)).then(|| Error::not_supported(format!("{path}.{key}"), found, known))
}

/// What is wrong with an expression that must give a value of this type.
fn expression(source: &str, seen: &[&str], wanted: Option<&str>, field: String) -> Option<Error> {
    match (Expression::compile(source, seen), wanted) {
        (Err(why), _) => Some(Error::invalid(field, source, why)),
        (Ok(read), Some(wanted)) => {
            let found = read.kind().filter(|found| *found != wanted)?;
            Some(Error::invalid(field, source, format!("must evaluate to {wanted} but got {found}")))
        }
        (Ok(_), None) => None,
    }
}

fn is_identifier(name: &str) -> bool {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub fn policy(object: &Value) -> Vec<Error> {
    let spec = object.get("spec").cloned().unwrap_or_default();
    let mut errors: Vec<Error> = one_of(&spec, "failurePolicy", "spec", &["Fail", "Ignore"]).into_iter().collect();
    let mut seen = SEEN.to_vec();
    if param_kind(&spec).is_some() {
        seen.push("params");
    }
    match spec.get("matchConstraints").filter(|constraints| constraints.is_object()) {
        None => errors.push(Error::required("spec.matchConstraints", "")),
        Some(of) => errors.extend(constraints(of, "spec.matchConstraints", true)),
    }
    errors.extend(conditions(&spec, "spec.matchConditions", &seen));
    // A variable sees those before it.
    if !items(&spec, "variables").is_empty() {
        seen.push("variables");
    }
    for (index, variable) in items(&spec, "variables").iter().enumerate() {
        let path = format!("spec.variables[{index}]");
        let name = text(variable, "/name");
        match name {
            "" => errors.push(Error::required(format!("{path}.name"), "name is not specified")),
            name if !is_identifier(name) => {
                errors.push(Error::invalid(format!("{path}.name"), name, "must be a valid CEL identifier"));
            }
            _ => {}
        }
        errors.extend(expression(text(variable, "/expression"), &seen, None, format!("{path}.expression")));
    }
    match text(object, "/kind") {
        "MutatingAdmissionPolicy" => errors.extend(mutations(&spec, &seen)),
        _ => errors.extend(validations(&spec, object.name(), &seen)),
    }
    errors
}

fn conditions(of: &Value, path: &str, seen: &[&str]) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, condition) in items(of, "matchConditions").iter().enumerate() {
        let path = format!("{path}[{index}]");
        match text(condition, "/expression") {
            "" => errors.push(Error::required(format!("{path}.expression"), "")),
            source => errors.extend(expression(source, seen, Some("bool"), format!("{path}.expression"))),
        }
        match text(condition, "/name") {
            "" => errors.push(Error::required(format!("{path}.name"), "")),
            name => {
                let wrong = names::qualified_name(name).into_iter();
                errors.extend(wrong.map(|why| Error::invalid(format!("{path}.name"), name, why)));
            }
        }
    }
    errors
}

fn validations(spec: &Value, name: &str, seen: &[&str]) -> Vec<Error> {
    const NOTHING: &str = "validations or auditAnnotations must contain at least one item";
    let mut errors = Vec::new();
    let (checks, notes) = (items(spec, "validations"), items(spec, "auditAnnotations"));
    if checks.is_empty() && notes.is_empty() {
        return vec![Error::required("spec.validations", NOTHING), Error::required("spec.auditAnnotations", NOTHING)];
    }
    for (index, check) in checks.iter().enumerate() {
        let path = format!("spec.validations[{index}]");
        match text(check, "/expression").trim() {
            "" => errors.push(Error::required(format!("{path}.expression"), "expression is not specified")),
            source => errors.extend(expression(source, seen, Some("bool"), format!("{path}.expression"))),
        }
        let message = text(check, "/message");
        if message.trim().contains('\n') {
            errors.push(Error::invalid(format!("{path}.message"), message, "must not contain line breaks"));
        }
        let source = text(check, "/messageExpression");
        if !source.is_empty() {
            errors.extend(expression(source, seen, Some("string"), format!("{path}.messageExpression")));
        }
        errors.extend(one_of(check, "reason", &path, &["Forbidden", "Invalid", "RequestEntityTooLarge"]));
    }
    for (index, note) in notes.iter().enumerate() {
        let path = format!("spec.auditAnnotations[{index}]");
        let key = format!("{name}/{}", text(note, "/key"));
        let wrong = names::qualified_name(&key).into_iter();
        errors.extend(wrong.map(|why| Error::invalid(format!("{path}.key"), key.as_str(), why)));
        match text(note, "/valueExpression") {
            "" => errors.push(Error::required(format!("{path}.valueExpression"), "valueExpression is not specified")),
            source => errors.extend(expression(source, seen, None, format!("{path}.valueExpression"))),
        }
    }
    errors
}

fn mutations(spec: &Value, seen: &[&str]) -> Vec<Error> {
    let mut errors = Vec::new();
    if items(spec, "mutations").is_empty() {
        errors.push(Error::required("spec.mutations", "mutations must contain at least one item"));
    }
    for (index, mutation) in items(spec, "mutations").iter().enumerate() {
        let path = format!("spec.mutations[{index}]");
        match text(mutation, "/patchType") {
            "JSONPatch" => {
                let source = text(mutation, "/jsonPatch/expression");
                errors.extend(expression(source, seen, None, format!("{path}.jsonPatch.expression")));
            }
            "ApplyConfiguration" => {
                let why =
                    "this server cannot evaluate object literals of ApplyConfiguration: write a JSONPatch instead";
                errors.push(Error::invalid(format!("{path}.patchType"), "ApplyConfiguration", why));
            }
            "" => errors.push(Error::required(format!("{path}.patchType"), "")),
            found => {
                let known = ["ApplyConfiguration", "JSONPatch"];
                errors.push(Error::not_supported(format!("{path}.patchType"), found, &known));
            }
        }
    }
    match text(spec, "/reinvocationPolicy") {
        "" => errors.push(Error::required("spec.reinvocationPolicy", "")),
        _ => errors.extend(one_of(spec, "reinvocationPolicy", "spec", &["IfNeeded", "Never"])),
    }
    errors
}

/// Rules of which requests something is about.
fn constraints(of: &Value, path: &str, needs_rules: bool) -> Vec<Error> {
    let mut errors: Vec<Error> = one_of(of, "matchPolicy", path, &["Equivalent", "Exact"]).into_iter().collect();
    if needs_rules && items(of, "resourceRules").is_empty() {
        errors.push(Error::required(format!("{path}.resourceRules"), ""));
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in items(of, key).iter().enumerate() {
            errors.extend(rule_parts(rule, &format!("{path}.{key}[{index}]")));
        }
    }
    errors
}

fn rule_parts(rule: &Value, path: &str) -> Vec<Error> {
    let mut errors = Vec::new();
    for key in ["operations", "apiGroups", "apiVersions", "resources"] {
        if items(rule, key).is_empty() {
            errors.push(Error::required(format!("{path}.{key}"), ""));
        }
    }
    let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    for (index, operation) in items(rule, "operations").iter().enumerate() {
        let operation = operation.as_str().unwrap_or_default();
        if !known.contains(&operation) {
            errors.push(Error::not_supported(format!("{path}.operations[{index}]"), operation, &known));
        }
    }
    errors
}

pub fn binding(object: &Value) -> Vec<Error> {
    let spec = object.get("spec").cloned().unwrap_or_default();
    let mut errors = Vec::new();
    if text(&spec, "/policyName").is_empty() {
        errors.push(Error::required("spec.policyName", ""));
    }
    if let Some(reference) = spec.get("paramRef").filter(|reference| reference.is_object()) {
        let (name, selector) = (!text(reference, "/name").is_empty(), reference.get("selector").is_some());
        match (name, selector) {
            (false, false) => {
                errors.push(Error::required("spec.paramRef", "one of name or selector must be specified"))
            }
            (true, true) => {
                let why = "name and selector are mutually exclusive";
                errors.push(Error::forbidden("spec.paramRef.name", why));
            }
            _ => {}
        }
        match text(reference, "/parameterNotFoundAction") {
            "" => errors.push(Error::required("spec.paramRef.parameterNotFoundAction", "")),
            _ => errors.extend(one_of(reference, "parameterNotFoundAction", "spec.paramRef", &["Allow", "Deny"])),
        }
    }
    if let Some(of) = spec.get("matchResources") {
        errors.extend(constraints(of, "spec.matchResources", false));
    }
    if text(object, "/kind") == "ValidatingAdmissionPolicyBinding" {
        errors.extend(actions(&spec));
    }
    errors
}

fn actions(spec: &Value) -> Vec<Error> {
    const FIELD: &str = "spec.validationActions";
    let known = ["Audit", "Deny", "Warn"];
    let all = items(spec, "validationActions");
    if all.is_empty() {
        return vec![Error::required(FIELD, "at least one validation action is required")];
    }
    let mut errors = Vec::new();
    for (index, action) in all.iter().enumerate() {
        let action = action.as_str().unwrap_or_default();
        if !known.contains(&action) {
            errors.push(Error::not_supported(format!("{FIELD}[{index}]"), action, &known));
        } else if all.iter().take(index).any(|before| before == action) {
            errors.push(Error::duplicate(format!("{FIELD}[{index}]"), action));
        }
    }
    if ["Deny", "Warn"].iter().all(|action| all.iter().any(|one| one == action)) {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.push(Error::invalid(FIELD, all.to_vec(), why));
    }
    errors
}

pub fn hooks(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, hook) in items(object, "webhooks").iter().enumerate() {
        let path = format!("webhooks[{index}]");
        let name = text(hook, "/name");
        if name.split('.').filter(|part| !part.is_empty()).count() < 3 {
            let why = "should be a domain with at least three segments separated by dots";
            errors.push(Error::invalid(format!("{path}.name"), name, why));
        }
        for (rule, parts) in items(hook, "rules").iter().enumerate() {
            errors.extend(rule_parts(parts, &format!("{path}.rules[{rule}]")));
        }
        errors.extend(one_of(hook, "failurePolicy", &path, &["Fail", "Ignore"]));
        errors.extend(one_of(hook, "matchPolicy", &path, &["Equivalent", "Exact"]));
        match text(hook, "/sideEffects") {
            "" => errors.push(Error::required(format!("{path}.sideEffects"), "must specify one of None, NoneOnDryRun")),
            _ => errors.extend(one_of(hook, "sideEffects", &path, &["None", "NoneOnDryRun"])),
        }
        let at = |key: &str| hook.pointer(&format!("/clientConfig/{key}")).is_some();
        if at("url") == at("service") {
            let why = "exactly one of url or service is required";
            errors.push(Error::required(format!("{path}.clientConfig"), why));
        }
        let url = text(hook, "/clientConfig/url");
        if let Some((scheme, _)) = url.split_once("://").filter(|(scheme, _)| *scheme != "https") {
            let why = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
            errors.push(Error::invalid(format!("{path}.clientConfig.url"), scheme, why));
        }
        if items(hook, "admissionReviewVersions").is_empty() {
            let why = "must specify one of v1, v1beta1";
            errors.push(Error::required(format!("{path}.admissionReviewVersions"), why));
        }
        errors.extend(conditions(hook, &format!("{path}.matchConditions"), &SEEN));
    }
    errors
}
