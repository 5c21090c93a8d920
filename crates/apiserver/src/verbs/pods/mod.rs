// SPDX-License-Identifier: Apache-2.0
//! What can be done with pods beside reading and writing them.

pub mod binding;
pub mod eviction;
pub mod log;

use http::StatusCode;
use serde_json::{Value, json};

use crate::{answer::Answer, call::Call, registry::Resource, status::Status, store::CommitError, store::Write};

/// How often a change is tried against others that write at the same time.
const TRIES: usize = 100;

/// What an action without a result of its own is answered with.
fn done() -> Answer {
    let body = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Answer::Document { code: StatusCode::CREATED, body }
}

/// Changes a stored object inside of the server: nobody becomes the manager of what changes.
async fn change(
    call: &Call,
    resource: &Resource,
    key: &str,
    mut with: impl FnMut(&mut Value) -> Result<(), Status>,
) -> Result<(), Status> {
    let name = key.rsplit('/').next().unwrap_or(key);
    for _ in 0..TRIES {
        let stored = call.server.store.get(&resource.keyspace, key);
        let stored = stored.ok_or_else(|| Status::not_found(&resource.group, &resource.plural, name))?;
        let mut object = resource.read(&stored);
        with(&mut object)?;
        if call.options.is_dry_run() {
            return Ok(());
        }
        let write = Write::Update(stored.revision());
        match call
            .server
            .store
            .commit(&resource.keyspace, key, write, |revision| resource.draft(&mut object, revision))
            .await
        {
            Ok(_) => return Ok(()),
            Err(CommitError::Changed(_)) => {}
            Err(CommitError::Absent) => return Err(Status::not_found(&resource.group, &resource.plural, name)),
            Err(error) => return Err(Status::internal(error)),
        }
    }
    Err(Status::modified(&resource.group, &resource.plural, name))
}
