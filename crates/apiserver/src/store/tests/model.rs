// SPDX-License-Identifier: Apache-2.0
//! The store against a model so plain that it can be believed: the whole state at every revision, in full.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::store::*;

const KEYS: [&str; 6] = ["a-b/x", "a/x", "a/y", "b/x", "b", "ab/z"];
const NAMESPACES: [Option<&str>; 4] = [None, Some("a"), Some("b"), Some("a-b")];

fn spaces() -> [Keyspace; 2] {
    [Keyspace::new("", "pods"), Keyspace::new("apps", "deployments")]
}

#[derive(Clone, Debug)]
enum Step {
    /// With the right revision if `fits`, with a wrong one if not.
    Write {
        space: usize,
        key: usize,
        what: u8,
        fits: bool,
    },
    Get {
        space: usize,
        key: usize,
        back: u64,
    },
    List {
        space: usize,
        namespace: usize,
        after: Option<usize>,
        limit: Option<usize>,
        back: u64,
        modulo: u64,
    },
    Watch {
        space: usize,
        back: u64,
    },
    Read {
        watcher: usize,
        max: usize,
    },
    Progress {
        watcher: usize,
    },
    Compact {
        back: u64,
    },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let space = 0..2_usize;
    let key = 0..KEYS.len();
    let back = prop_oneof![3 => Just(0), 2 => 0..12_u64];
    prop_oneof![
        12 => (space.clone(), key.clone(), 0..3_u8, prop::bool::weighted(0.9))
            .prop_map(|(space, key, what, fits)| Step::Write { space, key, what, fits }),
        2 => (space.clone(), key.clone(), back.clone()).prop_map(|(space, key, back)| Step::Get { space, key, back }),
        4 => (space.clone(), 0..4_usize, prop::option::of(key), prop::option::of(1..4_usize), back.clone(), 1..3_u64)
            .prop_map(|(space, namespace, after, limit, back, modulo)| {
                Step::List { space, namespace, after, limit, back, modulo }
            }),
        2 => (space, back.clone()).prop_map(|(space, back)| Step::Watch { space, back }),
        4 => (0..4_usize, 1..4_usize).prop_map(|(watcher, max)| Step::Read { watcher, max }),
        1 => (0..4_usize).prop_map(|watcher| Step::Progress { watcher }),
        1 => back.prop_map(|back| Step::Compact { back }),
        1 => Just(Step::Reopen),
    ]
}

type Objects = BTreeMap<&'static str, Stored>;

/// The state of both keyspaces at every revision, and every event, all kept for ever.
#[derive(Default)]
struct Model {
    at: BTreeMap<u64, [Objects; 2]>,
    events: [Vec<Event>; 2],
    compacted: u64,
    /// How many events each keyspace may keep.
    retained: usize,
}

impl Model {
    fn now(&self) -> u64 {
        *self.at.last_key_value().unwrap().0
    }

    fn objects(&self, space: usize, at: u64) -> &Objects {
        &self.at[&at][space]
    }

    /// The last event that had to make room.
    fn dropped(&self, space: usize) -> u64 {
        let events = &self.events[space];
        let by_count = events.len().checked_sub(self.retained + 1).map_or(0, |last| events[last].revision());
        let by_request = events.iter().map(Event::revision).take_while(|revision| *revision <= self.compacted).last();
        by_count.max(by_request.unwrap_or(0))
    }

    fn oldest(&self, space: usize) -> u64 {
        self.compacted.max(self.dropped(space))
    }

    fn readable(&self, space: usize, at: u64) -> Result<(), ReadError> {
        let oldest = self.oldest(space);
        if at < oldest { Err(Compacted { requested: at, oldest }.into()) } else { Ok(()) }
    }

    fn write(&mut self, space: usize, key: &'static str, kind: Kind, now: Stored) {
        let mut state = self.at.last_key_value().unwrap().1.clone();
        let before = match kind {
            Kind::Deleted => state[space].remove(key),
            _ => state[space].insert(key, now.clone()),
        };
        self.at.insert(now.revision(), state);
        self.events[space].push(Event { kind, now, before });
    }

    fn unread(&self, space: usize, seen: u64) -> impl Iterator<Item = &Event> {
        self.events[space].iter().filter(move |event| event.revision() > seen)
    }
}

struct Run {
    store: Store,
    model: Model,
    /// A watcher, its keyspace, and what it has seen according to the model.
    watchers: Vec<(Watcher, usize, u64)>,
    dir: Option<(tempfile::TempDir, Limits)>,
}

impl Run {
    fn new(retained: usize, on_disk: bool) -> Self {
        let limits = Limits { events: retained, ..Limits::default() };
        let dir = on_disk.then(|| (tempfile::tempdir().unwrap(), limits));
        let store = match &dir {
            Some((dir, limits)) => Store::open(dir.path(), *limits).unwrap(),
            None => Store::in_memory(limits),
        };
        let at = BTreeMap::from([(FIRST_REVISION, Default::default())]);
        Self { store, model: Model { at, retained, ..Model::default() }, watchers: Vec::new(), dir }
    }

    async fn step(&mut self, step: Step) {
        let spaces = spaces();
        let now = self.model.now();
        match step {
            Step::Write { space, key, what, fits } => self.write(space, KEYS[key], what, fits).await,
            Step::Get { space, key, back } => {
                let at = now.saturating_sub(back).max(FIRST_REVISION);
                let got = self.store.get_at(&spaces[space], KEYS[key], at);
                let readable = self.model.readable(space, at);
                assert_eq!(got, readable.map(|()| self.model.objects(space, at).get(KEYS[key]).cloned()));
                let live = self.store.get(&spaces[space], KEYS[key]);
                assert_eq!(live.as_ref(), self.model.objects(space, now).get(KEYS[key]));
            }
            Step::List { space, namespace, after, limit, back, modulo } => {
                let at = now.saturating_sub(back).max(FIRST_REVISION);
                let (namespace, after) = (NAMESPACES[namespace], after.map(|after| KEYS[after]));
                let range = Range { namespace, after, limit, at: (back > 0).then_some(at), count: modulo == 1 };
                self.list(space, range, at, modulo);
            }
            Step::Watch { space, back } => {
                let after = now.saturating_sub(back);
                let oldest = self.model.oldest(space);
                match self.store.watch(&spaces[space], after) {
                    Ok(watcher) => {
                        assert!(after >= oldest);
                        self.watchers.push((watcher, space, after));
                    }
                    Err(gone) => {
                        assert!(after < oldest);
                        assert_eq!(gone, Compacted { requested: after, oldest });
                    }
                }
            }
            Step::Read { watcher, max } => self.read(watcher, max),
            Step::Progress { watcher } => {
                if let Some((watcher, space, seen)) = self.watchers.get_mut(watcher) {
                    let behind = self.model.unread(*space, *seen).next().is_some();
                    if !behind {
                        *seen = now;
                    }
                    assert_eq!(watcher.progress(), *seen);
                }
            }
            Step::Compact { back } => {
                let revision = now.saturating_sub(back);
                self.store.compact(revision);
                self.model.compacted = self.model.compacted.max(revision);
            }
            Step::Reopen => self.reopen(),
        }
        assert_eq!(self.store.revision(), self.model.now());
    }

    async fn write(&mut self, space: usize, key: &'static str, what: u8, fits: bool) {
        let live = self.model.objects(space, self.model.now()).get(key).map(Stored::revision);
        let seen = if fits { live.unwrap_or(9) } else { live.unwrap_or(9) + 1 };
        let (write, kind) = match what {
            0 => (Write::Create, Kind::Added),
            1 => (Write::Update(seen), Kind::Modified),
            _ => (Write::Delete(seen), Kind::Deleted),
        };
        let render = |revision: u64| {
            let (even, text) = ((revision % 2).to_string(), revision.to_string());
            Draft { body: format!("{key} {text}").into(), tags: Tags::new([("odd", &*even)], [("rev", &*text)]) }
        };
        match (self.store.commit(&spaces()[space], key, write, render).await, live) {
            (Ok(made), live) => {
                assert!(if what == 0 { live.is_none() } else { live.is_some() && fits });
                assert_eq!(made.revision(), self.model.now() + 1);
                assert_eq!(made.body(), format!("{key} {}", made.revision()).as_bytes());
                self.model.write(space, key, kind, made);
            }
            (Err(CommitError::Exists), live) => assert!(what == 0 && live.is_some()),
            (Err(CommitError::Absent), live) => assert!(what != 0 && live.is_none()),
            (Err(CommitError::Changed(now)), live) => assert!(what != 0 && !fits && live == Some(now.revision())),
            (Err(CommitError::Failed(failure)), _) => panic!("{failure}"),
        }
    }

    fn list(&self, space: usize, range: Range<'_>, at: u64, modulo: u64) {
        let got = self.store.range(&spaces()[space], &range, |stored| stored.revision().is_multiple_of(modulo));
        if let Err(error) = self.model.readable(space, at) {
            assert_eq!(got.unwrap_err(), error);
            return;
        }
        let page = got.unwrap();
        let within = |key: &&&str| {
            range.namespace.is_none_or(|namespace| key.split_once('/').is_some_and(|(found, _)| found == namespace))
                && range.after.is_none_or(|after| **key > after)
        };
        let objects = self.model.objects(space, at);
        let mut rest: Vec<&Stored> = objects.keys().filter(within).map(|key| &objects[key]).collect();
        let mut expected = Vec::new();
        while !rest.is_empty() && expected.len() < range.limit.unwrap_or(usize::MAX) {
            let next = rest.remove(0);
            if next.revision().is_multiple_of(modulo) {
                expected.push(next.clone());
            }
        }
        assert_eq!(page.items, expected);
        assert_eq!((page.revision, page.more), (at, !rest.is_empty()));
        assert_eq!(page.remaining, range.count.then_some(rest.len() as u64));
    }

    fn read(&mut self, watcher: usize, max: usize) {
        let Some((watcher, space, seen)) = self.watchers.get_mut(watcher) else { return };
        let dropped = self.model.dropped(*space);
        let got = watcher.ready(max);
        if *seen < dropped {
            assert_eq!(got, Err(Compacted { requested: *seen, oldest: dropped }));
            return;
        }
        let expected: Vec<Event> = self.model.unread(*space, *seen).take(max).cloned().collect();
        *seen = expected.last().map_or(self.model.now(), Event::revision);
        assert_eq!(got, Ok(expected));
    }

    /// History comes back with the log. A compaction by request does not outlive the process.
    fn reopen(&mut self) {
        let Some((dir, limits)) = &self.dir else { return };
        self.watchers.clear();
        self.store = Store::in_memory(*limits);
        self.store = Store::open(dir.path(), *limits).unwrap();
        self.model.compacted = 0;
    }
}

fn run(retained: usize, on_disk: bool, steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut run = Run::new(retained, on_disk);
        for step in steps {
            run.step(step).await;
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_memory_like_the_model(retained in prop_oneof![0..8_usize, Just(1_000)], steps in prop::collection::vec(step(), 1..120)) {
        run(retained, false, steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_disk_like_the_model(retained in prop_oneof![0..8_usize, Just(1_000)], steps in prop::collection::vec(step(), 1..60)) {
        run(retained, true, steps);
    }
}
