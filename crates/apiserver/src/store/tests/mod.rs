// SPDX-License-Identifier: Apache-2.0

mod basics;
mod disk;
mod model;
mod pending;

use super::{Draft, Keyspace, Store, Stored, Tags, Write};

fn pods() -> Keyspace {
    Keyspace::new("", "pods")
}

/// A body that tells which write made it.
fn draft(text: &str) -> impl FnOnce(u64) -> Draft {
    move |revision| Draft { body: format!("{text}@{revision}").into(), tags: Tags::new([("app", text)], []) }
}

async fn put(store: &Store, key: &str) -> Stored {
    let write = store.get(&pods(), key).map_or(Write::Create, |now| Write::Update(now.revision()));
    store.commit(&pods(), key, write, draft(key)).await.unwrap()
}

async fn delete(store: &Store, key: &str) -> Stored {
    let revision = store.get(&pods(), key).unwrap().revision();
    store.commit(&pods(), key, Write::Delete(revision), draft(key)).await.unwrap()
}
