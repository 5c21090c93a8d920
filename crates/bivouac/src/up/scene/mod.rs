// SPDX-License-Identifier: Apache-2.0
//! What there is to see: a plain picture of the whole, from which every view is drawn.

mod follow;
mod item;

use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    time::Duration,
};

use jiff::Timestamp;

pub use follow::{follow, look};
pub use item::{Happening, Item, Key};

/// More events than any terminal has lines.
const EVENTS: usize = 100;

/// Everything a view shows.
#[derive(Clone, Debug)]
pub struct Scene {
    pub began: Timestamp,
    pub address: String,
    pub data_dir: PathBuf,
    /// What is being done until everything is ready.
    pub stage: &'static str,
    /// How long that took, when it is done.
    pub ready: Option<Duration>,
    /// What parts of the process wait for.
    pub waiting: Vec<String>,
    /// What went wrong and what to do, if something did.
    pub trouble: Option<String>,
    pub items: BTreeMap<Key, Item>,
    /// The newest last.
    pub events: VecDeque<Happening>,
    /// What to try next.
    pub commands: Vec<String>,
}

impl Scene {
    pub fn new(began: Timestamp, address: String, data_dir: PathBuf) -> Self {
        Self {
            began,
            address,
            data_dir,
            stage: "opening the data",
            ready: None,
            waiting: Vec::new(),
            trouble: None,
            items: BTreeMap::new(),
            events: VecDeque::new(),
            commands: Vec::new(),
        }
    }

    /// The number of objects in each state, by kind. Kinds and states are in a steady order.
    pub fn summary(&self) -> Vec<(&str, BTreeMap<&str, usize>)> {
        let mut all: Vec<(&str, BTreeMap<&str, usize>)> = Vec::new();
        for (key, item) in &self.items {
            match all.iter_mut().find(|(kind, _)| *kind == key.kind) {
                Some((_, states)) => *states.entry(&item.state).or_default() += 1,
                None => all.push((&key.kind, BTreeMap::from([(item.state.as_str(), 1)]))),
            }
        }
        all
    }

    /// Who waits, and for what.
    pub fn waits(&self) -> Vec<(String, &str)> {
        let parts = self.waiting.iter().map(|text| ("bivouac".to_owned(), text.as_str()));
        let objects = self.items.iter().filter_map(|(key, item)| Some((key.to_string(), item.waits_for.as_deref()?)));
        parts.chain(objects).collect()
    }

    pub fn note(&mut self, event: Happening) {
        // A repeat counts up an event that is there already.
        self.events.retain(|known| known.id != event.id);
        let at = self.events.partition_point(|known| known.at <= event.at);
        self.events.insert(at, event);
        while self.events.len() > EVENTS {
            self.events.pop_front();
        }
    }
}

/// `Workspace` becomes `Workspaces`, for headings.
pub fn plural(kind: &str) -> String {
    match kind {
        kind if kind.ends_with('y') => format!("{}ies", kind.trim_end_matches('y')),
        kind if kind.ends_with('s') => format!("{kind}es"),
        kind => format!("{kind}s"),
    }
}

/// `7 Running, 2 Pending`.
pub fn counted(states: &BTreeMap<&str, usize>) -> String {
    states.iter().map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_in_order_and_repeats_move_on() {
        let mut scene = Scene::new(Timestamp::UNIX_EPOCH, String::new(), PathBuf::new());
        let event = |id: &str, second| Happening {
            id: id.into(),
            at: Timestamp::from_second(second).unwrap(),
            about: String::new(),
            reason: String::new(),
            note: String::new(),
            warning: false,
        };
        for (id, second) in [("a", 3), ("b", 1), ("a", 5), ("c", 4)] {
            scene.note(event(id, second));
        }
        let order: Vec<&str> = scene.events.iter().map(|event| event.id.as_str()).collect();
        assert_eq!(order, ["b", "c", "a"]);
    }

    #[test]
    fn kinds_have_a_plural() {
        assert_eq!(plural("Workspace"), "Workspaces");
        assert_eq!(plural("Colony"), "Colonies");
        assert_eq!(plural("GPUNodeClass"), "GPUNodeClasses");
    }
}
