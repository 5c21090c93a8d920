// SPDX-License-Identifier: Apache-2.0
//! A multi-version store with one revision for all of it.
//!
//! Every write gets the next revision. A keyspace can be read as it was at any revision that is still retained, and
//! watched from there on. What is retained is limited by count and by bytes for each keyspace; behind that, readers and
//! watchers are told [`Compacted`].
//!
//! # When is a write visible?
//!
//! No reader and no watcher ever sees a write that could still be lost. In memory that is trivial: a write is visible
//! when its commit returns. On disk there are two revisions. `head` is the last one given out, `visible` the last one
//! that is safe on disk:
//!
//! 1. A commit is judged against `head`, so two writers of one object cannot both win. It is applied to the tables and
//!    its record is queued for the log, both under the lock, so the log has the order of the revisions.
//! 2. One thread takes all queued records, appends them in one write and syncs once. Then it moves `visible` over them
//!    and wakes the watchers and the waiting commits.
//! 3. Readers read at `visible`. That needs no second table: the events between `visible` and `head` hold the versions
//!    before them, as for any older revision. They are never dropped, whatever the limits say.
//! 4. A refused commit also waits until what it was judged against is visible. Nobody is told "changed" because of a
//!    write that then vanishes, and a reader who looks after such an answer sees the reason for it.
//! 5. If the disk refuses, the log is cut back to its last safe length, the events after `visible` are taken back,
//!    every waiting commit fails, and the store is read-only until it is opened again.

mod disk;
mod space;
mod state;
mod stored;
#[cfg(test)]
mod tests;
mod watch;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch::Sender;

pub use disk::{FORMAT, Fault, FileKind, OpenError, Reader, Record};
use disk::{Queue, Writer};
use space::Misfit;
use state::State;
pub use stored::{Draft, Keyspace, Pairs, PairsIter, Stored, Tags};
pub use watch::{Event, Kind, Watcher};

/// The revision of a store that nobody has written to. The first write is the next one.
pub const FIRST_REVISION: u64 = 1;

/// How much history to keep.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Events per keyspace.
    pub events: usize,
    /// Bytes per keyspace, of versions that only the history still holds.
    pub bytes: usize,
    /// How long a log on disk grows before a snapshot replaces it.
    pub log_bytes: u64,
}

/// A store. Clones are the same store; when the last one on disk is dropped, it is closed.
#[derive(Clone)]
pub struct Store {
    core: Arc<Core>,
    _writer: Option<Arc<Writer>>,
}

pub(crate) struct Core {
    limits: Limits,
    state: RwLock<State>,
    /// Tells waiters which revision is visible, and whether more can follow.
    progress: Sender<Progress>,
    /// Only on disk.
    queue: Option<Queue>,
}

#[derive(Clone)]
struct Progress {
    visible: u64,
    failure: Option<Failure>,
}

/// What to do with a key, and the revision the caller thinks it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    Create,
    Update(u64),
    Delete(u64),
}

/// Which objects to read. Keys are in plain byte order, so `a-b/x` comes before `a/x`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range<'a> {
    pub namespace: Option<&'a str>,
    /// Begin behind this key.
    pub after: Option<&'a str>,
    pub limit: Option<usize>,
    /// Read as of this revision instead of now.
    pub at: Option<u64>,
    /// Count the objects behind the page. That walks them; the next pages of the same revision can subtract instead.
    pub count: bool,
}

/// Objects in the order of their keys, as they were at one revision.
#[derive(Clone, Debug)]
pub struct Page {
    pub items: Vec<Stored>,
    pub revision: u64,
    /// Whether the limit left something out. The filter has not looked at that part.
    pub more: bool,
    /// How many objects lie behind the page, if the range asked.
    pub remaining: Option<u64>,
}

/// The history that was asked for is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision {requested} is compacted, the oldest is {oldest}")]
pub struct Compacted {
    pub requested: u64,
    pub oldest: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Compacted(#[from] Compacted),
    #[error("revision {requested} is not reached yet, the current one is {current}")]
    Future { requested: u64, current: u64 },
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    #[error("the key exists")]
    Exists,
    #[error("the key does not exist")]
    Absent,
    #[error("the key is at revision {}", .0.revision())]
    Changed(Stored),
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The disk refused a write. The store can be read but not written until it is opened again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot write {}: {source}; the store is read-only until it is opened again", path.display())]
pub struct Failure {
    pub path: PathBuf,
    pub source: Arc<io::Error>,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self { events: 100_000, bytes: 64 << 20, log_bytes: 64 << 20 }
    }
}

// === impl Store ===

impl Store {
    pub fn in_memory(limits: Limits) -> Self {
        Self { core: Arc::new(Core::new(State::default(), limits, None)), _writer: None }
    }

    /// Opens the store in a directory, which is made if it is not there. Blocks while it reads.
    pub fn open(dir: impl AsRef<Path>, limits: Limits) -> Result<Self, OpenError> {
        let dir = dir.as_ref();
        let (state, log, lock) = disk::open(dir, &limits)?;
        let core = Arc::new(Core::new(state, limits, Some(Queue::default())));
        let writer = Writer::start(core.clone(), log, lock).map_err(|error| OpenError::io(dir, error))?;
        Ok(Self { core, _writer: Some(Arc::new(writer)) })
    }

    /// A store of its own in memory that begins with what this one holds now: objects, revision and history. The
    /// bodies are shared, so this costs some pointers for each object.
    pub fn fork(&self) -> Self {
        let state = self.core.read().fork();
        Self { core: Arc::new(Core::new(state, self.core.limits, None)), _writer: None }
    }

    /// Every keyspace that was ever written to.
    pub fn keyspaces(&self) -> Vec<Keyspace> {
        self.core.read().keyspaces()
    }

    /// The last revision that readers can see.
    pub fn revision(&self) -> u64 {
        self.core.read().visible
    }

    pub fn get(&self, keyspace: &Keyspace, key: &str) -> Option<Stored> {
        // The current revision is always readable.
        self.core.read().get(keyspace, key, None).unwrap_or_default()
    }

    pub fn get_at(&self, keyspace: &Keyspace, key: &str, at: u64) -> Result<Option<Stored>, ReadError> {
        self.core.read().get(keyspace, key, Some(at))
    }

    /// One page of a keyspace. The filter runs under the store's lock: it must be quick and not call the store.
    pub fn range(
        &self,
        keyspace: &Keyspace,
        range: &Range<'_>,
        mut filter: impl FnMut(&Stored) -> bool,
    ) -> Result<Page, ReadError> {
        self.core.read().range(keyspace, range, &mut filter)
    }

    /// Writes one key and returns when the write is safe and visible, or the reason why it was refused is. `render` is
    /// given the revision of the write, because the body contains it; for a deletion it gives the last state of the
    /// object. It runs under the store's lock: it must be quick and not call the store. The write stands even if the
    /// future is dropped while it waits. In memory nothing waits.
    pub async fn commit(
        &self,
        keyspace: &Keyspace,
        key: &str,
        write: Write,
        render: impl FnOnce(u64) -> Draft,
    ) -> Result<Stored, CommitError> {
        let (judged_at, outcome) = self.core.write(keyspace, key, write, render)?;
        self.core.safe(judged_at).await?;
        outcome
    }

    /// Follows a keyspace from behind a revision. The watcher lives on when the store is closed, and waits for ever.
    pub fn watch(&self, keyspace: &Keyspace, after: u64) -> Result<Watcher, Compacted> {
        let mut state = self.core.lock();
        let oldest = state.oldest(keyspace);
        if after < oldest {
            return Err(Compacted { requested: after, oldest });
        }
        let signal = state.space_mut(keyspace).signal.clone();
        Ok(Watcher::new(self.core.clone(), keyspace.clone(), signal, after))
    }

    /// Waits until readers can see a revision. A failed disk stops the wait.
    pub async fn reached(&self, revision: u64) -> Result<(), Failure> {
        self.core.safe(revision).await
    }

    /// Drops the events up to a revision, and with them the history before it. The revision itself stays readable.
    pub fn compact(&self, revision: u64) {
        self.core.lock().compact(revision);
    }

    /// The oldest revision at which a keyspace can be read and from which it can be watched.
    pub fn oldest(&self, keyspace: &Keyspace) -> u64 {
        self.core.read().oldest(keyspace)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store(revision {})", self.revision())
    }
}

// === impl Core ===

impl Core {
    fn new(state: State, limits: Limits, queue: Option<Queue>) -> Self {
        let (progress, _) = tokio::sync::watch::channel(Progress { visible: state.visible, failure: None });
        Self { limits, state: RwLock::new(state), progress, queue }
    }

    // The caller's code runs under the lock only before anything is changed, so a panic in it breaks no state.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outcome, and the revision that has to be visible before anybody may be told.
    fn write(
        &self,
        keyspace: &Keyspace,
        key: &str,
        write: Write,
        render: impl FnOnce(u64) -> Draft,
    ) -> Result<(u64, Result<Stored, CommitError>), Failure> {
        let mut state = self.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        if let Err(misfit) = state.space_mut(keyspace).check(key, write) {
            return Ok((state.head, Err(misfit.into())));
        }
        let revision = state.head + 1;
        let stored = Stored::new(revision, key, render(revision));
        let deleted = matches!(write, Write::Delete(_));
        state.apply(keyspace, stored.clone(), deleted);
        match &self.queue {
            Some(queue) => queue.push(keyspace, stored.clone(), deleted),
            None => self.publish(state, revision, [keyspace]),
        }
        Ok((revision, Ok(stored)))
    }

    /// Shows readers all up to a revision, and wakes whoever waited for it.
    fn publish<'a>(
        &self,
        mut state: RwLockWriteGuard<'_, State>,
        revision: u64,
        touched: impl IntoIterator<Item = &'a Keyspace>,
    ) {
        let wake = state.publish(revision, touched, &self.limits);
        self.progress.send_replace(Progress { visible: revision, failure: None });
        drop(state);
        wake.iter().for_each(|signal| signal.notify_waiters());
    }

    /// The disk refused: nothing more is written, and whoever waits is told.
    fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        state.fail(failure.clone());
        self.progress.send_replace(Progress { visible: state.visible, failure: Some(failure) });
    }

    async fn safe(&self, revision: u64) -> Result<(), Failure> {
        let mut progress = self.progress.subscribe();
        let settled = progress.wait_for(|now| now.visible >= revision || now.failure.is_some()).await;
        match settled.ok().and_then(|now| if now.visible >= revision { None } else { now.failure.clone() }) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

impl Failure {
    fn new(path: &Path, source: io::Error) -> Self {
        Self { path: path.to_owned(), source: Arc::new(source) }
    }
}

impl From<Misfit> for CommitError {
    fn from(misfit: Misfit) -> Self {
        match misfit {
            Misfit::Exists => Self::Exists,
            Misfit::Absent => Self::Absent,
            Misfit::Changed(now) => Self::Changed(now),
        }
    }
}
