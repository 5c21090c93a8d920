// SPDX-License-Identifier: Apache-2.0
//! What the process still waits for. `/readyz` tells it in words.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The list of things waited for. Empty means ready. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeMap<String, String>>>);

impl Readiness {
    /// Notes that `who` waits; it counts until the guard is done or dropped.
    pub fn wait_for(&self, who: impl Into<String>) -> Waiting {
        let waiting = Waiting { list: self.clone(), who: who.into() };
        waiting.set("its start");
        waiting
    }

    /// One line per waiting part: who, and for what.
    pub fn waiting(&self) -> Vec<String> {
        self.list().iter().map(|(who, what)| format!("{who} waits for {what}")).collect()
    }

    fn list(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One part that is not ready yet.
#[derive(Debug)]
pub struct Waiting {
    list: Readiness,
    who: String,
}

impl Waiting {
    /// Says what for. A change is logged, so that the log tells what `/readyz` tells.
    pub fn set(&self, what: impl Into<String>) {
        let what = what.into();
        let before = self.list.list().insert(self.who.clone(), what.clone());
        if before.as_ref() != Some(&what) && what != "its start" {
            tracing::info!(who = self.who, "waiting for {what}");
        }
    }

    pub fn done(self) {}
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.list.list().remove(&self.who);
    }
}

#[cfg(test)]
mod tests {
    use super::Readiness;

    #[test]
    fn ready_means_that_nobody_waits() {
        let readiness = Readiness::default();
        let one = readiness.wait_for("tenancy");
        one.set("the CRD workspaces");
        let two = readiness.wait_for("lease");
        assert_eq!(readiness.waiting(), ["lease waits for its start", "tenancy waits for the CRD workspaces"]);
        one.done();
        drop(two);
        assert!(readiness.waiting().is_empty());
    }
}
