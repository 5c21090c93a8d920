// SPDX-License-Identifier: Apache-2.0
//! The two controllers without which a server cannot forget: garbage collection by owner references, and the emptying of
//! namespaces that are going.
//!
//! They follow the store, not the requests: whatever was committed is seen, also after a restart and also when the
//! request that wrote it was cut off. One loop does all the work, so the same history gives the same writes.

mod garbage;
mod graph;
mod namespaces;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use self::{garbage::Work, graph::Graph};
use crate::{
    ApiServer,
    registry::{Registry, Resource},
    server::Inner,
    store::{Keyspace, Range, Watcher},
};

/// Events of one keyspace that are read in one go.
const BATCH: usize = 1_000;
/// What could not be done is tried again after this long.
const AGAIN: Duration = Duration::from_millis(500);

impl ApiServer {
    /// Collects garbage and empties namespaces, for as long as the future runs.
    pub async fn collect(&self) {
        let mut collector = Collector::new(self.inner.clone());
        collector.look_at_everything();
        loop {
            let seen = self.inner.store.revision();
            collector.follow();
            let unfinished = collector.work().await;
            if self.inner.store.revision() > seen {
                continue;
            }
            let wait = tokio::time::sleep(if unfinished { AGAIN } else { Duration::from_secs(3_600) });
            tokio::select! {
                reached = self.inner.store.reached(seen + 1) => if reached.is_err() { return },
                () = wait => {}
            }
        }
    }
}

struct Collector {
    server: Arc<Inner>,
    graph: Graph,
    watchers: BTreeMap<Keyspace, Watcher>,
    work: Work,
}

impl Collector {
    fn new(server: Arc<Inner>) -> Self {
        Self { server, graph: Graph::default(), watchers: BTreeMap::new(), work: Work::default() }
    }

    /// Forgets what it knew and reads all objects.
    fn look_at_everything(&mut self) {
        self.graph = Graph::default();
        self.watchers.clear();
        self.work = Work::default();
        let registry = self.server.registry();
        for resource in stored_resources(&registry) {
            self.begin(resource);
        }
    }

    /// Begins to follow a resource: everything that exists, then what happens.
    fn begin(&mut self, resource: &Arc<Resource>) {
        let Ok(page) = self.server.store.range(&resource.keyspace, &Range::default(), |_| true) else { return };
        for stored in &page.items {
            self.work.note(self.graph.put(resource, stored));
        }
        if let Ok(watcher) = self.server.store.watch(&resource.keyspace, page.revision) {
            self.watchers.insert(resource.keyspace.clone(), watcher);
        }
    }

    /// Takes in what happened since the last look.
    fn follow(&mut self) {
        let registry = self.server.registry();
        for resource in stored_resources(&registry) {
            let Some(watcher) = self.watchers.get_mut(&resource.keyspace) else {
                self.begin(resource);
                continue;
            };
            loop {
                let events = match watcher.ready(BATCH) {
                    Ok(events) => events,
                    // Too far behind to follow: begin again.
                    Err(_) => return self.look_at_everything(),
                };
                if events.is_empty() {
                    break;
                }
                for event in events {
                    let news = match event.kind {
                        crate::store::Kind::Deleted => self.graph.remove(resource, &event.now),
                        _ => self.graph.put(resource, &event.now),
                    };
                    self.work.note(news);
                }
            }
        }
    }

    /// Does what can be done now. The answer is whether something has to be tried again.
    async fn work(&mut self) -> bool {
        let garbage = garbage::collect(&self.server, &mut self.graph, &mut self.work).await;
        let namespaces = namespaces::empty(&self.server, &mut self.work).await;
        garbage || namespaces
    }
}

/// Every stored resource once, in one of its versions.
fn stored_resources(registry: &Registry) -> impl Iterator<Item = &Arc<Resource>> {
    let mut seen = std::collections::BTreeSet::new();
    registry
        .all()
        .filter(|one| one.serves("list") && one.serves("delete"))
        .filter(move |one| seen.insert(one.keyspace.clone()))
}
