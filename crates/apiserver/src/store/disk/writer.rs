// SPDX-License-Identifier: Apache-2.0
//! The one thread that writes: it makes many commits safe with one sync.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::super::stored::{Keyspace, Stored};
use super::super::{Core, Failure};
use super::record::Record;
use super::snapshot::Content;

/// What is applied but not on disk yet.
#[derive(Default)]
pub struct Queue {
    pending: Mutex<Pending>,
    filled: Condvar,
}

#[derive(Default)]
struct Pending {
    batch: Batch,
    closed: bool,
}

/// Records in the order of their revisions.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    last: u64,
    touched: BTreeSet<Keyspace>,
}

/// The file that takes the writes now.
pub struct Log {
    pub dir: PathBuf,
    pub path: PathBuf,
    pub file: File,
    /// Up to here all is safe.
    pub len: u64,
}

/// Closes the store: when the last owner goes, the queue is written out, the thread ends and the lock is given back.
pub struct Writer {
    core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
    _lock: File,
}

// === impl Queue ===

impl Queue {
    /// Must be called under the lock of the state, which makes the order that of the revisions.
    pub fn push(&self, keyspace: &Keyspace, stored: Stored, deleted: bool) {
        let batch = &mut self.lock().batch;
        batch.last = stored.revision();
        let record = if deleted { Record::Delete } else { Record::Put };
        record(keyspace.clone(), stored).encode(&mut batch.bytes);
        if !batch.touched.contains(keyspace) {
            batch.touched.insert(keyspace.clone());
        }
        self.filled.notify_one();
    }

    /// All that is pending, as soon as there is something; none when the queue is closed and empty.
    fn take(&self) -> Option<Batch> {
        let waiting = |pending: &mut Pending| pending.batch.bytes.is_empty() && !pending.closed;
        let mut pending = self.filled.wait_while(self.lock(), waiting).unwrap_or_else(PoisonError::into_inner);
        let batch = std::mem::take(&mut pending.batch);
        (!batch.bytes.is_empty()).then_some(batch)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Log ===

impl Log {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => self.len += bytes.len() as u64,
            // What was refused must not come back at the next start. If this fails as well, then at most writes come
            // back whose fate nobody was told for certain.
            Err(_) => drop(self.file.set_len(self.len).and_then(|()| self.file.sync_all())),
        }
        written
    }
}

// === impl Writer ===

impl Writer {
    pub fn start(core: Arc<Core>, log: Log, lock: File) -> io::Result<Self> {
        let shared = core.clone();
        let thread = thread::Builder::new().name("store-log".to_owned()).spawn(move || run(&shared, log))?;
        Ok(Self { core, thread: Some(thread), _lock: lock })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(queue) = &self.core.queue {
            queue.close();
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn run(core: &Core, mut log: Log) {
    let Some(queue) = &core.queue else { return };
    let mut snapshot: Option<JoinHandle<u64>> = None;
    let mut snapshot_len = 0;
    while let Some(batch) = queue.take() {
        if let Err(error) = log.append(&batch.bytes) {
            core.fail(Failure::new(&log.path, error));
            break;
        }
        core.publish(core.lock(), batch.last, &batch.touched);
        if let Some(done) = snapshot.take_if(|running| running.is_finished()) {
            snapshot_len = done.join().unwrap_or(snapshot_len);
        }
        // A snapshot costs its size, so the log grows to that size before the next one.
        if snapshot.is_none() && log.len > core.limits.log_bytes.max(snapshot_len) {
            match rotate(core, &log) {
                Ok((next, thread)) => (log, snapshot) = (next, Some(thread)),
                Err(error) => {
                    core.fail(Failure::new(&log.dir, error));
                    break;
                }
            }
        }
    }
    if let Some(running) = snapshot {
        drop(running.join());
    }
}

/// Begins the next log, and a snapshot of all before it. A failed snapshot loses nothing, the logs are still there.
fn rotate(core: &Core, log: &Log) -> io::Result<(Log, JoinHandle<u64>)> {
    let content = {
        let state = core.read();
        Content { revision: state.visible, spaces: state.everything() }
    };
    let next = Log::create(&log.dir, content.revision + 1)?;
    let dir = log.dir.clone();
    let thread = thread::Builder::new().name("store-snapshot".to_owned()).spawn(move || {
        content.save(&dir).unwrap_or_else(|error| {
            tracing::warn!(%error, dir = %dir.display(), "cannot write a snapshot; the logs are kept instead");
            0
        })
    })?;
    Ok((next, thread))
}
