// SPDX-License-Identifier: Apache-2.0
//! The loop that runs all controllers of the cluster.

use std::{sync::Arc, time::Duration};

use bivouac_apiserver::{ApiServer, Speaker, User, store::Store};
use bivouac_core::Clock;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::{
    controller::{Controller, Moment, Plan},
    kinds::View,
    parts::Part,
    queue::Queue,
};

/// How a cluster is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which controllers run.
    pub parts: Vec<Part>,
}

/// The controllers of one simulated cluster.
#[derive(Debug)]
pub struct Cluster {
    store: Store,
    server: Speaker,
    clock: Arc<dyn Clock>,
    view: View,
    stations: Vec<Station>,
}

/// A controller and what it has to do.
#[derive(Debug)]
struct Station {
    controller: Box<dyn Controller>,
    queue: Queue,
}

impl Default for Settings {
    fn default() -> Self {
        Self { parts: Part::ALL.to_vec() }
    }
}

// === impl Cluster ===

impl Cluster {
    pub fn start(server: &ApiServer, settings: &Settings) -> Self {
        let stations = settings.parts.iter().map(|part| Station { controller: part.start(), queue: Queue::default() });
        Self {
            store: server.store().clone(),
            server: server.speaking_as(User::admin()),
            clock: server.clock(),
            view: View::new(),
            stations: stations.collect(),
        }
    }

    /// Runs until `stop` is cancelled, or the store's disk has failed.
    pub async fn run(mut self, stop: CancellationToken) {
        stop.run_until_cancelled(async {
            loop {
                let seen = self.store.revision();
                let due = self.settle().await;
                if self.store.revision() > seen {
                    continue;
                }
                let wait = due.map_or(Duration::from_secs(3_600), |due| until(self.clock.now(), due));
                tokio::select! {
                    reached = self.store.reached(seen + 1) => if reached.is_err() { return },
                    () = tokio::time::sleep(wait) => {}
                }
            }
        })
        .await;
    }

    /// Does everything that is due. The answer is when something is due next.
    pub async fn settle(&mut self) -> Option<Timestamp> {
        loop {
            self.follow();
            let now = self.clock.now();
            let next = self.stations.iter_mut().enumerate().find_map(|(at, one)| Some((at, one.queue.take(now)?)));
            let Some((at, key)) = next else {
                return self.stations.iter().filter_map(|station| station.queue.due()).min();
            };
            let Some(station) = self.stations.get_mut(at) else { continue };
            let moment = Moment { now, refusal: station.queue.refusal(&key) };
            let plan = station.controller.plan(&key, &self.view, &moment);
            let manager = station.controller.name();
            match carry_out(&plan, &self.server, manager, now).await {
                Ok(()) => station.queue.succeeded(&key),
                Err(refusal) => {
                    tracing::debug!(manager, %key, refusal.code, refusal.message, "a write was refused");
                    station.queue.failed(&key, refusal, now);
                }
            }
            if let Some(again) = plan.again {
                station.queue.later(&key, again);
            }
        }
    }

    /// Takes in what happened, and finds out whom it concerns.
    fn follow(&mut self) {
        for change in self.view.follow(&self.store) {
            for object in [&change.before, &change.after].into_iter().flatten() {
                for station in &mut self.stations {
                    let keys = station.controller.concerns(object, &self.view);
                    keys.into_iter().for_each(|key| station.queue.add(key));
                }
            }
        }
    }
}

async fn carry_out(
    plan: &Plan,
    server: &Speaker,
    manager: &str,
    now: Timestamp,
) -> Result<(), crate::controller::Refusal> {
    for write in &plan.writes {
        write.send(server, manager, now).await?;
    }
    Ok(())
}

/// At least a millisecond, which is what timers can tell apart.
fn until(now: Timestamp, due: Timestamp) -> Duration {
    let wait = Duration::try_from(due.duration_since(now)).unwrap_or_default();
    wait.max(Duration::from_millis(1))
}
