// SPDX-License-Identifier: Apache-2.0
//! Taking over children that another program wrote before us.
//!
//! Fields that a predecessor set by updates stay its own after we apply: dropping one from our wish would leave it there
//! for ever. So before the first apply its entries in managedFields become ours, and apply then removes what we do not
//! want.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::Value;

/// The managedFields after the takeover, or `None` when no predecessor left anything.
pub fn taken_over(fields: &[ManagedFieldsEntry], predecessors: &[&str], us: &str) -> Option<Vec<ManagedFieldsEntry>> {
    let theirs = |entry: &&ManagedFieldsEntry| {
        entry.operation.as_deref() == Some("Update")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
            && entry.manager.as_deref().is_some_and(|manager| predecessors.contains(&manager))
    };
    if !fields.iter().any(|entry| theirs(&entry)) {
        return None;
    }
    let mut result: Vec<ManagedFieldsEntry> = fields.iter().filter(|entry| !theirs(entry)).cloned().collect();
    for entry in fields.iter().filter(theirs) {
        let same = |one: &&mut ManagedFieldsEntry| {
            one.manager.as_deref() == Some(us)
                && one.operation.as_deref() == Some("Apply")
                && one.api_version == entry.api_version
        };
        match result.iter_mut().find(same) {
            // There is one entry per manager, operation and version.
            Some(ours) => {
                if let (Some(ours), Some(theirs)) = (&mut ours.fields_v1, &entry.fields_v1) {
                    merge(&mut ours.0, &theirs.0);
                }
            }
            None => {
                let (manager, operation) = (Some(us.to_owned()), Some("Apply".to_owned()));
                result.push(ManagedFieldsEntry { manager, operation, ..entry.clone() });
            }
        }
    }
    Some(result)
}

/// The union of two sets of fields; a set is a tree of objects.
fn merge(into: &mut Value, from: &Value) {
    let (Some(into), Some(from)) = (into.as_object_mut(), from.as_object()) else { return };
    for (field, below) in from {
        merge(into.entry(field.clone()).or_insert_with(|| Value::Object(Default::default())), below);
    }
}

#[cfg(test)]
mod tests {
    use super::taken_over;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
    use serde_json::{Value, json};

    fn entry(manager: &str, operation: &str, subresource: Option<&str>, fields: Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: Some(manager.into()),
            operation: Some(operation.into()),
            subresource: subresource.map(str::to_owned),
            api_version: Some("v1".into()),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        }
    }

    #[test]
    fn updates_of_a_predecessor_become_ours_and_nothing_else_does() {
        let fields = [
            entry("manager", "Update", None, json!({"f:spec": {"f:hard": {"f:cpu": {}}}})),
            entry("go-operator", "Update", None, json!({"f:spec": {"f:hard": {"f:memory": {}}}})),
            entry("manager", "Update", Some("status"), json!({"f:status": {}})),
            entry("kubectl", "Update", None, json!({"f:metadata": {}})),
        ];
        let result = taken_over(&fields, &["manager", "go-operator"], "us").unwrap();
        let who: Vec<_> = result.iter().map(|e| (e.manager.clone().unwrap(), e.operation.clone().unwrap())).collect();
        let named = |manager: &str, operation: &str| (manager.to_owned(), operation.to_owned());
        assert_eq!(who, [named("manager", "Update"), named("kubectl", "Update"), named("us", "Apply")]);
        assert_eq!(
            result[2].fields_v1.as_ref().unwrap().0,
            json!({"f:spec": {"f:hard": {"f:cpu": {}, "f:memory": {}}}})
        );
    }

    #[test]
    fn without_a_predecessor_nothing_changes() {
        assert!(taken_over(&[entry("kubectl", "Update", None, json!({}))], &["manager"], "us").is_none());
        assert!(taken_over(&[entry("manager", "Apply", None, json!({}))], &["manager"], "us").is_none());
    }
}
