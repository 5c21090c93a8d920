// SPDX-License-Identifier: Apache-2.0
//! Who has which rules: roles and bindings of the store, arranged by subject.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::{Attributes, User, rules::Rule};
use crate::{
    admission::list,
    object::{Object, text},
    request::selector::LabelSelector,
    server::Inner,
};
use std::sync::Arc;

pub const GROUP: &str = "rbac.authorization.k8s.io";

/// Everything that decides about rights, at one moment.
#[derive(Debug, Default)]
pub struct Index {
    cluster_roles: HashMap<String, Arc<Vec<Rule>>>,
    roles: HashMap<String, Arc<Vec<Rule>>>,
    everywhere: Grants,
    by_namespace: HashMap<String, Grants>,
}

/// Grants by the user or the group that has them.
#[derive(Debug, Default)]
struct Grants {
    users: HashMap<String, Vec<Grant>>,
    groups: HashMap<String, Vec<Grant>>,
}

/// One binding for one subject.
#[derive(Debug, Clone)]
struct Grant {
    /// Where it stands among all bindings.
    order: usize,
    text: String,
    rules: Result<Arc<Vec<Rule>>, String>,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub allowed: bool,
    pub reason: String,
}

impl Index {
    pub fn build(server: &Inner) -> Self {
        let cluster_roles = list(server, GROUP, "clusterroles", None);
        let mut index = Self {
            cluster_roles: cluster_roles
                .iter()
                .map(|role| (role.name().to_owned(), Arc::new(rules(role, &cluster_roles))))
                .collect(),
            ..Self::default()
        };
        for role in list(server, GROUP, "roles", None) {
            let key = format!("{}/{}", role.namespace(), role.name());
            index.roles.insert(key, Arc::new(Rule::all_of(&role)));
        }
        let bindings = list(server, GROUP, "clusterrolebindings", None).into_iter();
        for (order, binding) in bindings.chain(list(server, GROUP, "rolebindings", None)).enumerate() {
            index.bind(order, &binding);
        }
        index
    }

    fn bind(&mut self, order: usize, binding: &Value) {
        let namespace = binding.namespace();
        let (kind, role) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
        let rules = self.role(kind, namespace, role);
        let what = match namespace {
            "" => format!("ClusterRoleBinding {:?}", binding.name()),
            _ => format!("RoleBinding {:?}", format!("{}/{namespace}", binding.name())),
        };
        let grants = match namespace {
            "" => &mut self.everywhere,
            _ => self.by_namespace.entry(namespace.to_owned()).or_default(),
        };
        for subject in binding.get("subjects").and_then(Value::as_array).into_iter().flatten() {
            let name = text(subject, "/name");
            let home = match text(subject, "/namespace") {
                "" => namespace,
                home => home,
            };
            let (table, key, shown) = match text(subject, "/kind") {
                "User" => (&mut grants.users, name.to_owned(), format!("User {name:?}")),
                "Group" => (&mut grants.groups, name.to_owned(), format!("Group {name:?}")),
                "ServiceAccount" if !home.is_empty() => {
                    let shown = format!("ServiceAccount {:?}", format!("{name}/{home}"));
                    (&mut grants.users, format!("system:serviceaccount:{home}:{name}"), shown)
                }
                _ => continue,
            };
            let grant = Grant { order, text: format!("{what} of {kind} {role:?} to {shown}"), rules: rules.clone() };
            table.entry(key).or_default().push(grant);
        }
    }

    /// The rules of a role that a binding names.
    pub fn role(&self, kind: &str, namespace: &str, name: &str) -> Result<Arc<Vec<Rule>>, String> {
        let found = match kind {
            "ClusterRole" => self.cluster_roles.get(name),
            _ => self.roles.get(&format!("{namespace}/{name}")),
        };
        found.cloned().ok_or_else(|| format!("{}.{GROUP} {name:?} not found", kind.to_lowercase()))
    }

    /// What a user has in a namespace, in the order of the bindings.
    fn grants<'a>(&'a self, user: &'a User, namespace: &str) -> Vec<&'a Grant> {
        let local = if namespace.is_empty() { None } else { self.by_namespace.get(namespace) };
        let mut all: BTreeMap<usize, &Grant> = BTreeMap::new();
        for grants in [Some(&self.everywhere), local].into_iter().flatten() {
            let of_user = grants.users.get(&user.name).into_iter().flatten();
            let of_groups = user.groups.iter().filter_map(|group| grants.groups.get(group)).flatten();
            for grant in of_user.chain(of_groups) {
                all.entry(grant.order).or_insert(grant);
            }
        }
        all.into_values().collect()
    }

    pub fn decide(&self, user: &User, wanted: &Attributes<'_>) -> Decision {
        if user.groups.iter().any(|group| group == super::MASTERS) {
            return Decision { allowed: true, reason: String::new() };
        }
        let mut errors = Vec::new();
        for grant in self.grants(user, wanted.namespace) {
            match &grant.rules {
                Ok(rules) if rules.iter().any(|rule| rule.allows(wanted)) => {
                    return Decision { allowed: true, reason: format!("RBAC: allowed by {}", grant.text) };
                }
                Ok(_) => {}
                Err(error) => errors.push(error.clone()),
            }
        }
        let reason = if errors.is_empty() { String::new() } else { format!("RBAC: {}", aggregate(errors)) };
        Decision { allowed: false, reason }
    }

    /// All rules of a user in a namespace, and what could not be found.
    pub fn rules_of(&self, user: &User, namespace: &str) -> (Vec<Rule>, Option<String>) {
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        for grant in self.grants(user, namespace) {
            match &grant.rules {
                Ok(more) => rules.extend(more.iter().cloned()),
                Err(error) => errors.push(error.clone()),
            }
        }
        let error = (!errors.is_empty()).then(|| aggregate(errors));
        (rules, error)
    }
}

fn aggregate(mut errors: Vec<String>) -> String {
    let mut seen = Vec::new();
    errors.retain(|error| {
        !seen.contains(error) && {
            seen.push(error.clone());
            true
        }
    });
    match errors.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// The rules of a cluster role. One that only collects others has theirs, whether or not a controller has written them
/// down yet.
fn rules(role: &Value, all: &[Value]) -> Vec<Rule> {
    let selectors: Vec<LabelSelector> = selectors(role);
    let mut rules = Rule::all_of(role);
    let mut seen = vec![role.name()];
    let mut wanted: Vec<LabelSelector> = selectors;
    while let Some(selector) = wanted.pop() {
        for other in all {
            let labels = other.meta().and_then(|meta| meta.get("labels"));
            let matches = selector.matches(|key| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str));
            if matches && !seen.contains(&other.name()) {
                seen.push(other.name());
                rules.extend(Rule::all_of(other).into_iter().filter(|rule| !rules.contains(rule)).collect::<Vec<_>>());
                wanted.extend(self::selectors(other));
            }
        }
    }
    rules
}

fn selectors(role: &Value) -> Vec<LabelSelector> {
    let list = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(LabelSelector::from_object).collect()
}
