// SPDX-License-Identifier: Apache-2.0
//! Following one keyspace.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Notify;

use super::stored::{Keyspace, Stored};
use super::{Compacted, Core};

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Added,
    Modified,
    Deleted,
}

/// One change of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: Kind,
    /// The object after the change. Of a deleted object: its last state, with the revision of the deletion.
    pub now: Stored,
    /// The object before the change. With it a selector can tell that an object has entered or left its view.
    pub before: Option<Stored>,
}

/// A place in the event log of one keyspace, and nothing else. Nobody keeps events for a watcher: one that does not
/// ask falls behind the log and is told so, at no cost to the rest.
pub struct Watcher {
    core: Arc<Core>,
    keyspace: Keyspace,
    signal: Arc<Notify>,
    seen: u64,
}

impl Event {
    pub fn revision(&self) -> u64 {
        self.now.revision()
    }
}

impl Watcher {
    pub(super) fn new(core: Arc<Core>, keyspace: Keyspace, signal: Arc<Notify>, seen: u64) -> Self {
        Self { core, keyspace, signal, seen }
    }

    /// The next events, at least one and at most `max`. Waits while there are none. Dropping the future loses nothing.
    pub async fn next_batch(&mut self, max: usize) -> Result<Vec<Event>, Compacted> {
        let signal = self.signal.clone();
        loop {
            // Listening begins before looking, so that an event in between is not slept through.
            let mut woken = std::pin::pin!(signal.notified());
            woken.as_mut().enable();
            let events = self.ready(max)?;
            if !events.is_empty() {
                return Ok(events);
            }
            woken.await;
        }
    }

    /// The next events that are there already, at most `max`.
    pub fn ready(&mut self, max: usize) -> Result<Vec<Event>, Compacted> {
        let core = self.core.clone();
        let state = core.read();
        let Some(space) = state.space(&self.keyspace) else { return Ok(Vec::new()) };
        // A compaction alone is no loss for a watcher that had nothing to read: only a dropped event is.
        if self.seen < space.dropped() {
            return Err(Compacted { requested: self.seen, oldest: space.dropped() });
        }
        let told = |event: &&Event| !(fault!(LostEvent) && event.kind == Kind::Modified);
        let events: Vec<_> = space.events(self.seen, state.visible).filter(told).take(max).cloned().collect();
        match events.last() {
            Some(last) => self.seen = last.revision(),
            None => self.seen = self.seen.max(state.visible),
        }
        Ok(events)
    }

    /// Up to which revision this watcher has been given everything. While its keyspace is quiet this follows the
    /// revision of the store, so it is what a bookmark says.
    pub fn progress(&mut self) -> u64 {
        let core = self.core.clone();
        let state = core.read();
        let behind = state.space(&self.keyspace).is_some_and(|space| {
            self.seen < space.dropped() || space.events(self.seen, state.visible).next().is_some()
        });
        if !behind {
            self.seen = self.seen.max(state.visible);
        }
        self.seen
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watcher({} after {})", self.keyspace, self.seen)
    }
}
