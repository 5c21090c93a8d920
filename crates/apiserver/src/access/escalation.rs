// SPDX-License-Identifier: Apache-2.0
//! Nobody gives away rights that they do not have.

use serde_json::Value;

use super::{Attributes, MASTERS, Rule, decide, identity, index, rbac::GROUP, rules::uncovered};
use crate::{
    call::Call,
    object::{Object, text},
    status::Status,
};

/// Refuses a role or a binding that gives more than its author has.
pub fn check(call: &Call, new: &Value, old: Option<&Value>) -> Result<(), Status> {
    if &*call.resource.group != GROUP
        || fault!(EscalationAllowed)
        || call.user.groups.iter().any(|group| group == MASTERS)
    {
        return Ok(());
    }
    // What changes nothing about rights gives none away.
    let same = |fields: &[&str]| old.is_some_and(|old| fields.iter().all(|field| old.get(field) == new.get(field)));
    match &*call.resource.plural {
        "roles" | "clusterroles" if !same(&["rules", "aggregationRule"]) => role(call, new, old),
        "rolebindings" | "clusterrolebindings" if !same(&["roleRef", "subjects"]) => binding(call, new),
        _ => Ok(()),
    }
}

fn may(call: &Call, verb: &str, resource: &str, name: &str) -> bool {
    let wanted =
        Attributes { verb, group: GROUP, resource, namespace: call.namespace(), name, ..Attributes::default() };
    decide(&call.server, &call.user, &wanted).allowed
}

fn role(call: &Call, new: &Value, old: Option<&Value>) -> Result<(), Status> {
    if may(call, "escalate", &call.resource.plural, new.name()) {
        return Ok(());
    }
    confirm(call, new, &Rule::all_of(new))?;
    let collects = |role: &Value| role.get("aggregationRule").is_some_and(|rule| !rule.is_null());
    if collects(new) || old.is_some_and(collects) {
        let all = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let everything = [
            Rule { verbs: all(&["*"]), groups: all(&["*"]), resources: all(&["*"]), ..Rule::default() },
            Rule { verbs: all(&["*"]), urls: all(&["*"]), ..Rule::default() },
        ];
        if confirm(call, new, &everything).is_err() {
            let why = "must have cluster-admin privileges to use an aggregationRule";
            return Err(Status::forbidden(GROUP, &call.resource.plural, new.name(), why));
        }
    }
    Ok(())
}

fn binding(call: &Call, new: &Value) -> Result<(), Status> {
    let (kind, name) = (text(new, "/roleRef/kind"), text(new, "/roleRef/name"));
    let plural = if kind == "ClusterRole" { "clusterroles" } else { "roles" };
    if may(call, "bind", plural, name) {
        return Ok(());
    }
    match index(&call.server).role(kind, call.namespace(), name) {
        Ok(rules) => confirm(call, new, &rules),
        Err(_) => Err(Status::not_found(GROUP, kind.to_lowercase().as_str(), name)),
    }
}

fn confirm(call: &Call, object: &Value, wanted: &[Rule]) -> Result<(), Status> {
    let (owned, error) = index(&call.server).rules_of(&call.user, call.namespace());
    let mut missing: Vec<String> = uncovered(&owned, wanted).iter().map(Rule::text).collect();
    if missing.is_empty() {
        return Ok(());
    }
    missing.sort();
    missing.dedup();
    let who = identity::shown(&call.user);
    let mut why = format!("{who} is attempting to grant RBAC permissions not currently held:\n{}", missing.join("\n"));
    if let Some(error) = error {
        why = format!("{why}; resolution errors: [{error}]");
    }
    Err(Status::forbidden(GROUP, &call.resource.plural, object.name(), why))
}
