// SPDX-License-Identifier: Apache-2.0
//! Policies: ValidatingAdmissionPolicy and MutatingAdmissionPolicy with their bindings.

mod authorizer;
pub mod cel;
pub mod form;
pub mod matching;
mod mutating;
mod registered;
mod rewrite;
mod validating;

use kube_cel::cel::Value as Cel;
use serde_json::{Value, json};

use super::{Review, look};
use crate::{
    access,
    call::{Call, attributes},
    object::text,
    registry::Resource,
    request::selector::LabelSelector,
    store::Range,
    verbs::review::shown,
};
use cel::{Variables, from_json};
pub use mutating::mutate;
use registered::{Binding, Policy};
pub use registered::{Hook, Registered};
pub use validating::validate;

const GROUP: &str = "admissionregistration.k8s.io";

/// Whether nobody may stand between this kind and the store.
pub fn is_exempt(resource: &Resource) -> bool {
    &*resource.group == GROUP
}

/// The request as expressions and webhooks see it.
pub fn request(call: &Call, review: &Review<'_>) -> Value {
    let resource = &call.resource;
    let kind = json!({ "group": &*resource.group, "version": &*resource.version, "kind": &*resource.kind });
    let of = json!({ "group": &*resource.group, "version": &*resource.version, "resource": &*resource.plural });
    let options = |kind: &str| {
        let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
        if let Some(map) = options.as_object_mut() {
            let given = &call.options;
            map.extend(given.field_manager.as_ref().map(|manager| ("fieldManager".to_owned(), json!(manager))));
            map.extend(given.is_dry_run().then(|| ("dryRun".to_owned(), json!(["All"]))));
        }
        options
    };
    let word = matching::word(review.operation);
    let options = match word {
        "CREATE" => options("CreateOptions"),
        "DELETE" => options("DeleteOptions"),
        _ => options(if call.method == http::Method::PATCH { "PatchOptions" } else { "UpdateOptions" }),
    };
    let mut request = json!({
        "uid": "",
        "kind": kind,
        "resource": of,
        "requestKind": kind,
        "requestResource": of,
        "name": review.name,
        "operation": word,
        "userInfo": shown(&call.user),
        "dryRun": call.options.is_dry_run(),
        "options": options,
    });
    let is_namespace = resource.group.is_empty() && &*resource.kind == "Namespace";
    let namespace = if is_namespace { review.name } else { review.namespace };
    if let Some(map) = request.as_object_mut() {
        if !namespace.is_empty() {
            map.insert("namespace".into(), namespace.into());
        }
        if let Some(part) = &call.target.subresource {
            map.insert("subResource".into(), part.as_str().into());
            map.insert("requestSubResource".into(), part.as_str().into());
        }
    }
    request
}

/// What every expression of a policy can see.
pub fn variables(call: &Call, review: &Review<'_>, params: Option<&Value>) -> Variables {
    let mut all = Variables::new();
    all.set("object", review.object().map_or(Cel::Null, from_json));
    all.set("oldObject", review.old.map_or(Cel::Null, from_json));
    all.set("request", from_json(&request(call, review)));
    let namespace = match review.namespace {
        "" => None,
        namespace => look(&call.server, "", "namespaces", namespace),
    };
    all.set("namespaceObject", namespace.as_ref().map_or(Cel::Null, from_json));
    all.set("params", params.map_or(Cel::Null, from_json));
    let question = authorizer::Question::new(access::index(&call.server), call.user.clone());
    let verb = call.target.verb(&call.method, &call.options);
    let own = attributes(&call.target, verb);
    all.set("authorizer.requestResource", question.clone().about(&own).value());
    all.set("authorizer", question.value());
    all
}

/// The variables of the policy itself. One that fails is only missed where it is used.
struct Own {
    failed: Vec<(String, String)>,
}

impl Own {
    fn evaluate(policy: &Policy, all: &mut Variables) -> Self {
        let mut failed = Vec::new();
        let mut values = std::collections::HashMap::<String, Cel>::new();
        for (name, expression) in &policy.variables {
            all.set("variables", values.clone().into());
            match expression.evaluate(all) {
                Ok(value) => drop(values.insert(name.clone(), value)),
                Err(error) => failed.push((name.clone(), error)),
            }
        }
        all.set("variables", values.into());
        Self { failed }
    }

    /// Names the variable that made an expression fail.
    fn explain(&self, error: String) -> String {
        let of = self.failed.iter().find(|(name, _)| error == format!("no such key: {name}"));
        match of {
            Some((name, why)) => format!("composited variable {name:?} fails to evaluate: {why}"),
            None => error,
        }
    }
}

/// Whether a policy goes on after its conditions. An error counts as the policy says.
fn conditions_hold(policy: &Policy, all: &Variables) -> Result<bool, String> {
    let mut errors = Vec::new();
    for (name, condition) in &policy.conditions {
        match condition.evaluate(all) {
            Ok(Cel::Bool(false)) => return Ok(false),
            Ok(Cel::Bool(true)) => {}
            Ok(_) => errors.push(format!("matchCondition {name:?} did not evaluate to a boolean")),
            Err(error) => errors.push(format!("expression '{}' resulted in error: {error}", condition.source)),
        }
    }
    match errors.as_slice() {
        [] => Ok(true),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// The parameters of a binding: several, none, or a reason why they cannot be found.
fn params(call: &Call, review: &Review<'_>, policy: &Policy, binding: &Binding) -> Result<Vec<Option<Value>>, String> {
    let (Some((group, version, kind)), Some(reference)) = (&policy.param_kind, binding.spec.get("paramRef")) else {
        return Ok(vec![None]);
    };
    let Some(resource) = call.server.registry().find_kind(group, version, kind).cloned() else {
        return Err(format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'"));
    };
    let namespace = match text(reference, "/namespace") {
        _ if !resource.namespaced => "",
        "" if review.namespace.is_empty() => {
            return Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".into());
        }
        "" => review.namespace,
        namespace => namespace,
    };
    let name = text(reference, "/name");
    let found: Vec<Option<Value>> = if name.is_empty() {
        let selector = reference.get("selector").and_then(LabelSelector::from_object).unwrap_or_default();
        let range = Range { namespace: Some(namespace).filter(|name| !name.is_empty()), ..Range::default() };
        let page = call
            .server
            .store
            .range(&resource.keyspace, &range, |stored| selector.matches(|key| stored.labels().get(key)));
        page.map(|page| page.items).unwrap_or_default().iter().map(|stored| Some(resource.read(stored))).collect()
    } else {
        let stored = call.server.store.get(&resource.keyspace, &resource.key(namespace, name));
        stored.iter().map(|stored| Some(resource.read(stored))).collect()
    };
    if found.is_empty() && text(reference, "/parameterNotFoundAction") == "Deny" {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".into());
    }
    Ok(found)
}

/// Whether a policy and one of its bindings are about the request.
fn bound<'a>(call: &Call, review: &Review<'_>, policy: &'a Policy) -> Vec<&'a Binding> {
    if !matching::matches(call, review, &policy.constraints, "resourceRules") {
        return Vec::new();
    }
    let applies = |binding: &&Binding| {
        let own = binding.spec.get("matchResources");
        own.is_none_or(|own| matching::matches(call, review, own, "resourceRules"))
    };
    policy.bindings.iter().filter(applies).collect()
}

#[cfg(test)]
mod tests;
