// SPDX-License-Identifier: Apache-2.0
//! Everything behind the store's one lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;

use super::space::{Space, Span};
use super::stored::{Keyspace, Stored};
use super::{Compacted, FIRST_REVISION, Failure, Limits, Page, Range, ReadError};

pub(super) struct State {
    /// The last revision that was given out.
    pub head: u64,
    /// The last revision that readers may see: all up to it is safe. Never after `head`.
    pub visible: u64,
    /// History before this revision was given up by request or lies before the snapshot.
    pub compacted: u64,
    /// Set once, when the disk refused a write: from then on nothing is written.
    pub failure: Option<Failure>,
    spaces: BTreeMap<Keyspace, Space>,
}

impl Default for State {
    fn default() -> Self {
        Self { head: FIRST_REVISION, visible: FIRST_REVISION, compacted: 0, failure: None, spaces: BTreeMap::new() }
    }
}

impl State {
    /// What readers can see now, for another store.
    pub fn fork(&self) -> Self {
        let fork = |(keyspace, space): (&Keyspace, &Space)| {
            let mut space = space.fork();
            space.undo_after(self.visible);
            (keyspace.clone(), space)
        };
        Self {
            head: self.visible,
            visible: self.visible,
            compacted: self.compacted,
            failure: None,
            spaces: self.spaces.iter().map(fork).collect(),
        }
    }

    pub fn space(&self, keyspace: &Keyspace) -> Option<&Space> {
        self.spaces.get(keyspace)
    }

    pub fn keyspaces(&self) -> Vec<Keyspace> {
        self.spaces.keys().cloned().collect()
    }

    pub fn space_mut(&mut self, keyspace: &Keyspace) -> &mut Space {
        self.spaces.entry(keyspace.clone()).or_default()
    }

    /// Takes in the next version. Readers do not see it before [`State::publish`].
    pub fn apply(&mut self, keyspace: &Keyspace, now: Stored, deleted: bool) {
        self.head = now.revision();
        self.space_mut(keyspace).apply(now, deleted);
    }

    /// Shows readers all up to a revision, and returns what wakes the watchers of the keyspaces that changed.
    pub fn publish<'a>(
        &mut self,
        revision: u64,
        touched: impl IntoIterator<Item = &'a Keyspace>,
        limits: &Limits,
    ) -> Vec<Arc<Notify>> {
        self.visible = revision;
        let mut wake = Vec::new();
        for keyspace in touched {
            if let Some(space) = self.spaces.get_mut(keyspace) {
                space.trim(limits, revision);
                wake.push(space.signal.clone());
            }
        }
        wake
    }

    /// The disk refused what readers have not seen yet. It never happened.
    pub fn fail(&mut self, failure: Failure) {
        for space in self.spaces.values_mut() {
            space.undo_after(self.visible);
        }
        self.head = self.visible;
        self.failure = Some(failure);
    }

    pub fn compact(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision.min(self.visible));
        for space in self.spaces.values_mut() {
            space.compact(self.compacted);
        }
    }

    /// The oldest revision at which this keyspace can still be read.
    pub fn oldest(&self, keyspace: &Keyspace) -> u64 {
        self.compacted.max(self.space(keyspace).map_or(0, Space::dropped))
    }

    fn readable(&self, keyspace: &Keyspace, at: Option<u64>) -> Result<u64, ReadError> {
        let at = at.unwrap_or(self.visible);
        let oldest = self.oldest(keyspace);
        if at > self.visible {
            return Err(ReadError::Future { requested: at, current: self.visible });
        }
        if at < oldest {
            return Err(Compacted { requested: at, oldest }.into());
        }
        Ok(at)
    }

    pub fn get(&self, keyspace: &Keyspace, key: &str, at: Option<u64>) -> Result<Option<Stored>, ReadError> {
        let at = self.readable(keyspace, at)?;
        Ok(self.space(keyspace).and_then(|space| space.get_at(key, at)).cloned())
    }

    pub fn range(
        &self,
        keyspace: &Keyspace,
        range: &Range<'_>,
        filter: &mut dyn FnMut(&Stored) -> bool,
    ) -> Result<Page, ReadError> {
        let at = self.readable(keyspace, range.at)?;
        let mut page = Page { items: Vec::new(), revision: at, more: false, remaining: range.count.then_some(0) };
        let Some(space) = self.space(keyspace) else { return Ok(page) };
        let span = Span::new(range.namespace, range.after);
        let limit = range.limit.unwrap_or(usize::MAX);
        let mut found = space.walk(&span, at);
        while page.items.len() < limit {
            let Some(stored) = found.next() else { return Ok(page) };
            if filter(stored) {
                page.items.push(stored.clone());
            }
        }
        if range.count {
            let remaining = found.count() as u64;
            page.more = remaining > 0;
            page.remaining = Some(remaining);
        } else {
            page.more = found.next().is_some();
        }
        Ok(page)
    }

    /// Every object that readers may see now: what a snapshot has to hold.
    pub fn everything(&self) -> Vec<(Keyspace, Vec<Stored>)> {
        let all = Span::new(None, None);
        let visible = |space: &Space| space.walk(&all, self.visible).cloned().collect();
        self.spaces.iter().map(|(keyspace, space)| (keyspace.clone(), visible(space))).collect()
    }
}
