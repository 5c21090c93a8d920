// SPDX-License-Identifier: Apache-2.0
//! A definition that goes takes its objects with it.

use serde_json::Value;

use super::{FINALIZER, change, condition, resource};
use crate::{
    kinds::conditions,
    object::{Object, text},
    registry::Resource,
    server::Inner,
    status::Status,
    store::{CommitError, Keyspace, Range, Write},
};

/// Deletes the objects of a definition that is going, and the definition when none is left.
pub async fn run(server: &Inner, resource: &Resource, name: &str) -> Result<(), Status> {
    let Some(stored) = server.store.get(&resource.keyspace, name) else { return Ok(()) };
    let definition = resource.read(&stored);
    if !definition.is_going() || !definition.finalizers().contains(&FINALIZER) {
        return Ok(());
    }
    let keyspace = Keyspace::new(text(&definition, "/spec/group"), text(&definition, "/spec/names/plural"));
    delete_all(server, &keyspace).await?;
    let page = server.store.range(&keyspace, &Range { limit: Some(1), ..Range::default() }, |_| true);
    let empty = page.map_err(Status::internal)?.items.is_empty();
    let now = server.now();
    change(server, resource, name, |definition| {
        let state = if empty {
            condition("Terminating", "False", "InstanceDeletionCompleted", "removed all instances", &now)
        } else {
            condition(
                "Terminating",
                "True",
                "InstanceDeletionInProgress",
                "CustomResource deletion is in progress",
                &now,
            )
        };
        conditions::set(definition, state);
        if empty {
            let left: Vec<String> =
                definition.finalizers().into_iter().filter(|one| *one != FINALIZER).map(str::to_owned).collect();
            if left.is_empty() {
                definition.meta_mut().remove("finalizers");
            } else {
                definition.set_meta("finalizers", left);
            }
        }
    })
    .await?;
    if empty {
        remove(server, resource, name).await?;
    }
    Ok(())
}

/// Removes a definition that nothing holds any more.
async fn remove(server: &Inner, resource: &Resource, name: &str) -> Result<(), Status> {
    let Some(stored) = server.store.get(&resource.keyspace, name) else { return Ok(()) };
    let mut definition = resource.read(&stored);
    if !definition.finalizers().is_empty() {
        return Ok(());
    }
    let write = Write::Delete(stored.revision());
    let outcome = server
        .store
        .commit(&resource.keyspace, name, write, |revision| resource.draft(&mut definition, revision))
        .await;
    match outcome {
        Ok(_) => Box::pin(super::written(server, resource, Some(&stored), None)).await,
        // Somebody else was quicker, or wrote a finalizer: they will see to it.
        Err(CommitError::Changed(_) | CommitError::Absent | CommitError::Exists) => Ok(()),
        Err(error) => Err(Status::internal(error)),
    }
}

/// Objects that something holds are only marked.
async fn delete_all(server: &Inner, keyspace: &Keyspace) -> Result<(), Status> {
    let page = server.store.range(keyspace, &Range::default(), |_| true).map_err(Status::internal)?;
    for stored in page.items {
        let mut object: Value = serde_json::from_slice(stored.body()).map_err(Status::internal)?;
        let held = !object.finalizers().is_empty();
        if held && object.is_going() {
            continue;
        }
        if held {
            object.set_meta("deletionTimestamp", server.now());
            object.set_meta("deletionGracePeriodSeconds", 0);
            object.set_meta("generation", object.generation() + 1);
        }
        let write = if held { Write::Update(stored.revision()) } else { Write::Delete(stored.revision()) };
        let outcome =
            server.store.commit(keyspace, stored.key(), write, |revision| draft(&object, &stored, revision)).await;
        match outcome {
            Ok(_) | Err(CommitError::Changed(_) | CommitError::Absent | CommitError::Exists) => {}
            Err(error) => return Err(Status::internal(error)),
        }
    }
    Ok(())
}

fn draft(object: &Value, before: &crate::store::Stored, revision: u64) -> crate::store::Draft {
    let mut object = object.clone();
    object.set_meta("resourceVersion", revision.to_string());
    let tags = crate::store::Tags::new(before.labels(), before.fields());
    crate::store::Draft { body: serde_json::to_vec(&object).unwrap_or_default(), tags }
}

/// After an object of a definition that is going was removed.
pub async fn instance_gone(server: &Inner, definition: &str) -> Result<(), Status> {
    match resource(server) {
        Some(resource) => run(server, &resource, definition).await,
        None => Ok(()),
    }
}
