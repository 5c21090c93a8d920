// SPDX-License-Identifier: Apache-2.0
//! The store on disk: a directory with one snapshot and the logs since then.
//!
//! | file | content |
//! |---|---|
//! | `lock` | held while a process has the store open; names that process |
//! | `snapshot-S` | every object at revision S |
//! | `log-N` | the writes from revision N on |
//!
//! When a log has grown enough, a new one is begun, and what was written so far goes into a snapshot; then the older
//! files are removed. A new log exists before the snapshot that ends where it begins, so at every moment the files that
//! are there make up the whole store.

mod names;
mod open;
mod record;
mod snapshot;
mod writer;

pub use open::OpenError;
pub(super) use open::open;
pub use record::{FORMAT, Fault, FileKind, Reader, Record};
pub(super) use writer::{Queue, Writer};
