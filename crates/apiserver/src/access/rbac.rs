// SPDX-License-Identifier: Apache-2.0
//! Who has which rules: roles and bindings of the store, arranged by subject.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde_json::Value;

use super::{Attributes, User, rules::Rule};
use crate::{
    object::{Object, text},
    request::selector::LabelSelector,
    server::Inner,
    store::{Keyspace, Range, Stored},
};

pub const GROUP: &str = "rbac.authorization.k8s.io";

/// Everything that decides about rights, at one moment.
#[derive(Debug, Default)]
pub struct Index {
    roles: Arc<Roles>,
    everywhere: Arc<Grants>,
    by_namespace: HashMap<String, Arc<Grants>>,
}

#[derive(Debug, Default)]
struct Roles {
    /// What it was made from. A revision is given once, so equal lists mean equal objects.
    made_from: Vec<u64>,
    cluster: HashMap<String, Arc<Vec<Rule>>>,
    /// By namespace and name.
    local: HashMap<String, Arc<Vec<Rule>>>,
}

/// Grants by the user or the group that has them.
#[derive(Debug, Default)]
struct Grants {
    made_from: Vec<u64>,
    users: HashMap<String, Vec<Grant>>,
    groups: HashMap<String, Vec<Grant>>,
}

/// One binding for one subject.
#[derive(Debug, Clone)]
struct Grant {
    /// Where it stands among the bindings of its namespace; those of no namespace come first.
    order: (bool, usize),
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
    /// The rights as they are now. Reads again only what differs from an earlier look: one binding is written much more
    /// often than all others together.
    pub fn build(server: &Inner, before: Option<&Self>) -> Self {
        let (cluster_roles, local_roles) = (stored(server, "clusterroles"), stored(server, "roles"));
        let made_from: Vec<u64> = cluster_roles.iter().chain(&local_roles).map(Stored::revision).collect();
        let before = before.filter(|before| before.roles.made_from == made_from);
        let roles = match before {
            Some(before) => before.roles.clone(),
            None => Arc::new(Roles::read(made_from, &cluster_roles, &local_roles)),
        };
        let renew = |known: Option<&Arc<Grants>>, bindings: &[Stored]| match known {
            Some(known) if known.made_from.iter().copied().eq(bindings.iter().map(Stored::revision)) => known.clone(),
            _ => Arc::new(Grants::read(bindings, &roles)),
        };
        let everywhere = renew(before.map(|before| &before.everywhere), &stored(server, "clusterrolebindings"));
        let local = stored(server, "rolebindings");
        let by_namespace = local.chunk_by(|one, other| one.namespace() == other.namespace()).filter_map(|bindings| {
            let namespace = bindings.first()?.namespace().to_owned();
            let known = before.and_then(|before| before.by_namespace.get(&namespace));
            Some((namespace, renew(known, bindings)))
        });
        let by_namespace = by_namespace.collect();
        Self { roles, everywhere, by_namespace }
    }

    /// The rules of a role that a binding names.
    pub fn role(&self, kind: &str, namespace: &str, name: &str) -> Result<Arc<Vec<Rule>>, String> {
        self.roles.find(kind, namespace, name)
    }

    /// What a user has in a namespace, in the order of the bindings.
    fn grants<'a>(&'a self, user: &'a User, namespace: &str) -> Vec<&'a Grant> {
        let local = if namespace.is_empty() { None } else { self.by_namespace.get(namespace) };
        let mut all: BTreeMap<(bool, usize), &Grant> = BTreeMap::new();
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

impl Roles {
    fn read(made_from: Vec<u64>, cluster: &[Stored], local: &[Stored]) -> Self {
        let cluster: Vec<Value> = cluster.iter().filter_map(parsed).collect();
        let with_rules = |role: &Value| (role.name().to_owned(), Arc::new(rules(role, &cluster)));
        let of_namespace =
            |role: Value| (format!("{}/{}", role.namespace(), role.name()), Arc::new(Rule::all_of(&role)));
        Self {
            made_from,
            cluster: cluster.iter().map(with_rules).collect(),
            local: local.iter().filter_map(parsed).map(of_namespace).collect(),
        }
    }

    fn find(&self, kind: &str, namespace: &str, name: &str) -> Result<Arc<Vec<Rule>>, String> {
        let found = match kind {
            "ClusterRole" => self.cluster.get(name),
            _ => self.local.get(&format!("{namespace}/{name}")),
        };
        found.cloned().ok_or_else(|| format!("{}.{GROUP} {name:?} not found", kind.to_lowercase()))
    }
}

impl Grants {
    fn read(bindings: &[Stored], roles: &Roles) -> Self {
        let mut grants = Self { made_from: bindings.iter().map(Stored::revision).collect(), ..Self::default() };
        for (order, binding) in bindings.iter().filter_map(parsed).enumerate() {
            grants.bind(order, &binding, roles);
        }
        grants
    }

    fn bind(&mut self, order: usize, binding: &Value, roles: &Roles) {
        let namespace = binding.namespace();
        let (kind, role) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
        let rules = roles.find(kind, namespace, role);
        let what = match namespace {
            "" => format!("ClusterRoleBinding {:?}", binding.name()),
            _ => format!("RoleBinding {:?}", format!("{}/{namespace}", binding.name())),
        };
        for subject in binding.get("subjects").and_then(Value::as_array).into_iter().flatten() {
            let name = text(subject, "/name");
            let home = match text(subject, "/namespace") {
                "" => namespace,
                home => home,
            };
            let (table, key, shown) = match text(subject, "/kind") {
                "User" => (&mut self.users, name.to_owned(), format!("User {name:?}")),
                "Group" => (&mut self.groups, name.to_owned(), format!("Group {name:?}")),
                "ServiceAccount" if !home.is_empty() => {
                    let shown = format!("ServiceAccount {:?}", format!("{name}/{home}"));
                    (&mut self.users, format!("system:serviceaccount:{home}:{name}"), shown)
                }
                _ => continue,
            };
            let grant = Grant {
                order: (!namespace.is_empty(), order),
                text: format!("{what} of {kind} {role:?} to {shown}"),
                rules: rules.clone(),
            };
            table.entry(key).or_default().push(grant);
        }
    }
}

/// The stored objects of a kind of this group, in the order of their keys.
fn stored(server: &Inner, plural: &str) -> Vec<Stored> {
    let page = server.store.range(&Keyspace::new(GROUP, plural), &Range::default(), |_| true);
    page.map(|page| page.items).unwrap_or_default()
}

fn parsed(stored: &Stored) -> Option<Value> {
    serde_json::from_slice(stored.body()).ok()
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
