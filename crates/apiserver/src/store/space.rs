// SPDX-License-Identifier: Apache-2.0
//! One keyspace: the newest version of each object, and the retained events, which are at the same time its history.
//!
//! There is no list of versions per object. An event holds the version before it, so the state at an older revision is
//! the newest state with the events since then taken back. An object that nobody changes costs no history.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::Notify;

use super::stored::{ByKey, Stored};
use super::{Event, Kind, Limits, Write};

#[derive(Default)]
pub(super) struct Space {
    live: BTreeSet<ByKey>,
    /// The retained events in the order of their revisions.
    log: VecDeque<Event>,
    /// The revisions of the retained events of each key.
    changed: BTreeMap<Box<str>, VecDeque<u64>>,
    /// The revision of the newest event that is no longer retained.
    dropped: u64,
    /// What is alive only because the log holds it.
    bytes: usize,
    /// Wakes the watchers of this keyspace.
    pub signal: Arc<Notify>,
}

/// Keys from one bound to another, in byte order.
pub(super) struct Span {
    from: Bound<String>,
    to: Bound<String>,
}

/// Why a write does not fit what is stored.
#[derive(Debug)]
pub(super) enum Misfit {
    Exists,
    Absent,
    Changed(Stored),
}

// === impl Space ===

impl Space {
    /// The same objects and history for another store, with watchers of its own.
    pub fn fork(&self) -> Self {
        Self {
            live: self.live.clone(),
            log: self.log.clone(),
            changed: self.changed.clone(),
            dropped: self.dropped,
            bytes: self.bytes,
            signal: Arc::default(),
        }
    }

    /// Judges a write by the newest state, whether or not readers may see that state yet.
    pub fn check(&self, key: &str, write: Write) -> Result<(), Misfit> {
        match (write, self.live.get(key)) {
            (Write::Create, None) => Ok(()),
            (Write::Create, Some(_)) => Err(Misfit::Exists),
            (Write::Update(_) | Write::Delete(_), None) => Err(Misfit::Absent),
            (Write::Update(seen) | Write::Delete(seen), Some(ByKey(now))) if now.revision() == seen => Ok(()),
            (_, Some(ByKey(now))) => Err(Misfit::Changed(now.clone())),
        }
    }

    /// Adds a version without an event: for what a snapshot holds.
    pub fn restore(&mut self, now: Stored) -> bool {
        self.live.insert(ByKey(now))
    }

    pub fn apply(&mut self, now: Stored, deleted: bool) {
        let before = match deleted {
            true => self.live.take(now.key()),
            false => self.live.replace(ByKey(now.clone())),
        };
        let before = before.map(|entry| entry.0);
        let kind = match (&before, deleted) {
            (_, true) => Kind::Deleted,
            (None, false) => Kind::Added,
            (Some(_), false) => Kind::Modified,
        };
        match self.changed.get_mut(now.key()) {
            Some(revisions) => revisions.push_back(now.revision()),
            None => drop(self.changed.insert(now.key().into(), VecDeque::from([now.revision()]))),
        }
        let event = Event { kind, now, before };
        self.bytes += weight(&event);
        self.log.push_back(event);
    }

    /// Takes back every event after `revision`. The disk refused them, and nobody saw them.
    pub fn undo_after(&mut self, revision: u64) {
        while let Some(event) = self.log.pop_back_if(|event| event.revision() > revision) {
            self.bytes -= weight(&event);
            self.forget(event.now.key(), VecDeque::pop_back);
            match event.before {
                Some(before) => drop(self.live.replace(ByKey(before))),
                None => drop(self.live.take(event.now.key())),
            }
        }
    }

    /// Drops the oldest events until the log is within its limits. Only what readers have been able to see may go.
    pub fn trim(&mut self, limits: &Limits, visible: u64) {
        while self.log.len() > limits.events || self.bytes > limits.bytes {
            if !self.drop_oldest_up_to(visible) {
                break;
            }
        }
    }

    pub fn compact(&mut self, revision: u64) {
        while self.drop_oldest_up_to(revision) {}
    }

    fn drop_oldest_up_to(&mut self, revision: u64) -> bool {
        let Some(event) = self.log.pop_front_if(|event| event.revision() <= revision) else { return false };
        self.bytes -= weight(&event);
        self.dropped = event.revision();
        self.forget(event.now.key(), VecDeque::pop_front);
        true
    }

    fn forget(&mut self, key: &str, end: fn(&mut VecDeque<u64>) -> Option<u64>) {
        if let Some(revisions) = self.changed.get_mut(key) {
            end(revisions);
            if revisions.is_empty() {
                self.changed.remove(key);
            }
        }
    }

    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub fn get_at(&self, key: &str, at: u64) -> Option<&Stored> {
        match self.changed.get(key).and_then(|revisions| self.first_after(revisions, at)) {
            Some(event) => event.before.as_ref(),
            None => self.live.get(key).map(|entry| &entry.0),
        }
    }

    /// The events after one revision, up to and including another.
    pub fn events(&self, after: u64, up_to: u64) -> impl Iterator<Item = &Event> {
        let start = self.log.partition_point(|event| event.revision() <= after);
        self.log.range(start..).take_while(move |event| event.revision() <= up_to)
    }

    /// The objects of a span as they were at a revision, in the order of their keys.
    pub fn walk<'a>(&'a self, span: &'a Span, at: u64) -> Box<dyn Iterator<Item = &'a Stored> + 'a> {
        let Some(bounds) = span.bounds() else { return Box::new(std::iter::empty()) };
        let live = self.live.range::<str, _>(bounds).map(|entry| &entry.0);
        if self.log.back().is_none_or(|event| event.revision() <= at) {
            return Box::new(live);
        }
        let mut live = live.peekable();
        let mut since = self
            .changed
            .range::<str, _>(bounds)
            .filter_map(move |(key, revisions)| Some((&**key, self.first_after(revisions, at)?.before.as_ref())))
            .peekable();
        Box::new(std::iter::from_fn(move || {
            loop {
                let order = match (live.peek(), since.peek()) {
                    (None, None) => return None,
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (Some(now), Some((key, _))) => now.key().cmp(key),
                };
                match order {
                    Ordering::Less => return live.next(),
                    // Changed since then: the version now does not count, the one before comes in the next round.
                    Ordering::Equal => drop(live.next()),
                    Ordering::Greater => {
                        if let Some((_, Some(before))) = since.next() {
                            return Some(before);
                        }
                    }
                }
            }
        }))
    }

    fn first_after(&self, revisions: &VecDeque<u64>, at: u64) -> Option<&Event> {
        let wanted = *revisions.get(revisions.partition_point(|revision| *revision <= at))?;
        self.log.get(self.log.partition_point(|event| event.revision() < wanted))
    }
}

/// The version before an event has no other owner than the log, and neither has the last state of a deleted object.
fn weight(event: &Event) -> usize {
    let last = if event.kind == Kind::Deleted { event.now.weight() } else { 0 };
    size_of::<Event>() + event.before.as_ref().map_or(0, Stored::weight) + last
}

// === impl Span ===

impl Span {
    pub fn new(namespace: Option<&str>, after: Option<&str>) -> Self {
        let (from, to) = match namespace {
            // '0' is the byte behind '/'.
            Some(namespace) => (Bound::Included(format!("{namespace}/")), Bound::Excluded(format!("{namespace}0"))),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        match after {
            Some(after) if !matches!(&from, Bound::Included(first) if first.as_str() > after) => {
                Self { from: Bound::Excluded(after.to_owned()), to }
            }
            _ => Self { from, to },
        }
    }

    /// None if the span is empty, which a B-tree would not accept.
    fn bounds(&self) -> Option<(Bound<&str>, Bound<&str>)> {
        let bounds = (self.from.as_ref().map(String::as_str), self.to.as_ref().map(String::as_str));
        match bounds {
            (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to)) if from >= to => None,
            _ => Some(bounds),
        }
    }
}
