// SPDX-License-Identifier: Apache-2.0
//! The list of controllers: what each is called, needs and may do.

use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::core::GroupVersionKind;

use crate::Runtime;

/// One controller, as the process knows it.
#[derive(Clone)]
pub struct Registration {
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// The APIs it watches for: its own kinds and optional ones.
    pub apis: fn() -> Vec<GroupVersionKind>,
    /// Exactly the rights it needs.
    pub rbac: fn() -> Vec<PolicyRule>,
    /// Leases of programs that write the same objects, as (namespace, name). We do not start beside them.
    pub rivals: &'static [(&'static str, &'static str)],
    pub run: Arc<dyn Fn(Runtime) -> BoxFuture<'static, ()> + Send + Sync>,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A selection that names no known controller.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SelectionError {
    #[error("there is no controller {name:?}; known are: {known}")]
    Unknown { name: String, known: String },
    #[error("--controllers={0} selects nothing")]
    Nothing(String),
}

/// Understands `*`, `name` and `-name`, separated by commas; later words win.
pub fn select(all: &[Registration], selection: &str) -> Result<Vec<Registration>, SelectionError> {
    let mut chosen = vec![false; all.len()];
    for word in selection.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let (name, wanted) = word.strip_prefix('-').map_or((word, true), |name| (name, false));
        if name != "*" && all.iter().all(|one| one.name != name) {
            let known: Vec<_> = all.iter().map(|one| one.name).collect();
            return Err(SelectionError::Unknown { name: name.to_owned(), known: known.join(", ") });
        }
        for (slot, one) in chosen.iter_mut().zip(all) {
            if name == "*" || one.name == name {
                *slot = wanted;
            }
        }
    }
    let selected: Vec<_> = all.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(one, _)| one.clone()).collect();
    if selected.is_empty() { Err(SelectionError::Nothing(selection.to_owned())) } else { Ok(selected) }
}

/// A rule in the order people write it.
pub fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(owned(groups)),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

/// What every process of ours may do, whatever its controllers.
pub fn base_rules() -> Vec<PolicyRule> {
    vec![
        rule(&["events.k8s.io"], &["events"], &["create", "patch"]),
        rule(&["apiextensions.k8s.io"], &["customresourcedefinitions"], &["list", "watch"]),
    ]
}

/// What leader election needs, in the operator's own namespace only.
pub fn lease_rules() -> Vec<PolicyRule> {
    vec![rule(&["coordination.k8s.io"], &["leases"], &["get", "create", "update"])]
}

#[cfg(test)]
mod tests {
    use super::{Registration, SelectionError, select};

    fn named(name: &'static str) -> Registration {
        let run =
            std::sync::Arc::new(|_| -> futures::future::BoxFuture<'static, ()> { Box::pin(std::future::ready(())) });
        Registration { name, about: "", apis: Vec::new, rbac: Vec::new, rivals: &[], run }
    }

    fn chosen(selection: &str) -> Result<Vec<&'static str>, SelectionError> {
        let all = [named("tenancy"), named("nodes"), named("modules")];
        select(&all, selection).map(|chosen| chosen.iter().map(|one| one.name).collect())
    }

    #[test]
    fn selections() {
        assert_eq!(chosen("*").unwrap(), ["tenancy", "nodes", "modules"]);
        assert_eq!(chosen("*,-nodes").unwrap(), ["tenancy", "modules"]);
        assert_eq!(chosen(" nodes , tenancy ").unwrap(), ["tenancy", "nodes"]);
        assert_eq!(chosen("-*,nodes").unwrap(), ["nodes"]);
        assert!(matches!(chosen("-nodes"), Err(SelectionError::Nothing(_))));
        assert_eq!(
            chosen("*,-node").unwrap_err().to_string(),
            "there is no controller \"node\"; known are: tenancy, nodes, modules"
        );
    }
}
