// SPDX-License-Identifier: Apache-2.0
//! Between a write and its safety: readers see nothing of it, and if the disk refuses, nothing of it remains.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use proptest::prelude::*;

use super::{draft, pods};
use crate::store::state::State;
use crate::store::*;

#[derive(Clone, Debug)]
enum Step {
    Put(u8),
    Delete(u8),
    /// So many of the waiting writes are on disk now.
    Safe(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![4 => (0..4_u8).prop_map(Step::Put), 2 => (0..4_u8).prop_map(Step::Delete), 2 => (1..5_u64).prop_map(Step::Safe)]
}

type Objects = BTreeMap<String, Stored>;

/// The state after each revision, and how far it is safe.
struct Run {
    state: State,
    limits: Limits,
    after: Vec<(u64, Objects)>,
}

impl Run {
    fn new(events: usize) -> Self {
        let limits = Limits { events, ..Limits::default() };
        Self { state: State::default(), limits, after: vec![(FIRST_REVISION, Objects::new())] }
    }

    fn newest(&self) -> &Objects {
        &self.after.last().unwrap().1
    }

    fn write(&mut self, key: u8, deleted: bool) {
        let key = format!("a/{key}");
        let mut objects = self.newest().clone();
        let revision = self.state.head + 1;
        let stored = Stored::new(revision, &key, draft(&key)(revision));
        if deleted && objects.remove(&key).is_none() {
            return;
        }
        if !deleted {
            objects.insert(key, stored.clone());
        }
        self.state.apply(&pods(), stored, deleted);
        self.after.push((revision, objects));
    }

    /// A reader's page and get, a watcher's end, and a snapshot all stop at what is visible.
    fn check(&self) {
        let visible = self.state.visible;
        let (_, objects) = self.after.iter().find(|(revision, _)| *revision == visible).unwrap();
        let expected: Vec<Stored> = objects.values().cloned().collect();
        let page = self.state.range(&pods(), &Range::default(), &mut |_| true).unwrap();
        assert_eq!((page.revision, &page.items), (visible, &expected));
        for key in 0..4 {
            let key = format!("a/{key}");
            assert_eq!(self.state.get(&pods(), &key, None).unwrap().as_ref(), objects.get(&key));
        }
        let everything: Vec<Stored> = self.state.everything().into_iter().flat_map(|(_, objects)| objects).collect();
        assert_eq!(everything, expected);
        let future = self.state.get(&pods(), "a/0", Some(visible + 1));
        assert_eq!(future, Err(ReadError::Future { requested: visible + 1, current: visible }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn readers_see_what_is_safe_and_no_more(events in 0..6_usize, steps in prop::collection::vec(step(), 1..60)) {
        let mut run = Run::new(events);
        for step in steps {
            match step {
                Step::Put(key) => run.write(key, false),
                Step::Delete(key) => run.write(key, true),
                Step::Safe(writes) => {
                    let safe = (run.state.visible + writes).min(run.state.head);
                    run.state.publish(safe, [&pods()], &run.limits);
                }
            }
            run.check();
        }
        let visible = run.state.visible;
        run.state.fail(Failure::new(Path::new("log"), io::Error::other("full")));
        run.check();
        prop_assert_eq!(run.state.head, visible);
        let newest = run.state.space(&pods()).map_or(0, |space| space.events(0, u64::MAX).map(Event::revision).max().unwrap_or(0));
        prop_assert!(newest <= visible, "event {} is still there", newest);
    }
}
