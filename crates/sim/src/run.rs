// SPDX-License-Identifier: Apache-2.0
//! One run: a world, an operator in it, what happens to both, and what came of it.

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};

use anyhow::Result;
use bivouac_apiserver::{ApiServer, ForkSettings, Speaker, User};
use bivouac_runtime::{lease, process, registry::Registration};
use bivouac_simulator::Cluster;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    Trial,
    baseline::Baseline,
    clock::HostClock,
    end,
    fault::Fault,
    gate::{Crossroads, Gate},
    invariants::Watchman,
    outcome::Outcome,
    scenario::{Expectation, Scenario},
    timeline, world,
    yard::Yard,
};

/// Nothing was written for this long: longer than any wait between two tries of anybody.
const STILL: Duration = Duration::from_secs(400);
/// After that, nothing at all may be written for this long.
const QUIET: Duration = Duration::from_secs(600);
/// A process that died is started again after this long.
const REBIRTH: Duration = Duration::from_secs(1);
/// How long the other replica keeps a lease that it took.
const REIGN: Duration = Duration::from_secs(40);

/// What a run is made from.
#[derive(Clone)]
pub struct Stage {
    /// Runs are forks of it.
    pub base: ApiServer,
    pub scenario: Arc<Scenario>,
    pub controllers: Vec<Registration>,
    /// Whether every call is told to people.
    pub aloud: bool,
    /// Where one run may become several.
    pub crossroads: Option<Crossroads>,
}

/// Plays a trial. Without a baseline it is the baseline itself.
pub async fn run(stage: &Stage, trial: &Trial, baseline: Option<&Baseline>) -> Baseline {
    fastrand::seed(trial.seed);
    let local = tokio::task::LocalSet::new();
    local.run_until(play(stage, trial, baseline)).await
}

async fn play(stage: &Stage, trial: &Trial, baseline: Option<&Baseline>) -> Baseline {
    let start = Instant::now();
    let stop = CancellationToken::new();
    let server = stage.base.fork(ForkSettings { clock: Arc::new(HostClock::default()), seed: Some(trial.seed) });
    let admin = server.speaking_as(User::admin());
    let (yard, user) = (Yard::default(), world::operator(stage.scenario.is_planted()));
    let gate = Gate::new(server.speaking_as(user), yard.clone(), trial, stage);
    let watchman = Rc::new(RefCell::new(Watchman::new(server.store().clone(), stage.scenario.secret.clone())));
    let mut violations = Vec::new();
    for object in &stage.scenario.before {
        if let Err(error) = world::apply(&admin, object).await {
            violations.push(format!("the scenario cannot begin: {error:#}"));
        }
    }
    let cluster = Cluster::start(&server, &bivouac_simulator::Settings::default());
    tokio::task::spawn_local(cluster.run(stop.clone()));
    let collecting = server.clone();
    tokio::task::spawn_local(async move { collecting.collect().await });
    tokio::task::spawn_local(keep_watch(server.clone(), watchman.clone()));
    let clock = HostClock::default();
    let operator = Operator { stage: stage.clone(), gate: gate.clone(), clock: clock.clone() };
    tokio::task::spawn_local(operator.live_and_live_again());
    for fault in &trial.faults {
        tokio::task::spawn_local(strike(fault.clone(), clock.clone(), admin.clone(), start));
    }
    let restart = async || {
        gate.kill();
        sleep(REBIRTH).await;
    };
    let (mut calls, mut events, mut settled_after) = (0, 0, 0);
    let story = async {
        if let Err(error) = timeline::play(&stage.scenario, &admin, start, restart).await {
            violations.push(format!("{error:#}"));
        }
        let settled = settle(&stage.scenario, &gate, &watchman).await;
        (calls, events) = (gate.calls(), gate.events());
        settled_after = gate.last_write().duration_since(start).as_secs();
        match settled {
            true => disturbed_quiet(&gate, &watchman).await,
            false => Some(format!("G4: not settled {} s after the last step", stage.scenario.settles_within)),
        }
    };
    let restless = tokio::select! {
        restless = story => restless,
        path = gate.overheated() => Some(format!("G4: {path} is written again and again")),
    };
    violations.extend(restless);
    watchman.borrow_mut().look();
    for expectation in &stage.scenario.expect {
        violations.extend(unmet(expectation, &admin).await);
    }
    let end = end::of(server.store(), stage.base.store().revision());
    violations.extend(yard.orphans(server.store()));
    let deletes = gate.deletes();
    if let Some(baseline) = baseline {
        violations.extend(end::differences(&baseline.end, &end));
        let more = deletes.difference(&baseline.deletes);
        violations.extend(more.map(|path| format!("G6: {path} was deleted, which an undisturbed operator keeps")));
    }
    gate.note(&serde_json::to_string(&end).unwrap_or_default());
    let mut watchman = watchman.borrow_mut();
    watchman.violations.append(&mut violations);
    let seconds = start.elapsed().as_secs_f64();
    let nodes = end.keys().filter(|key| key.starts_with("nodes ")).count();
    let outcome = Outcome {
        calls,
        events,
        steps: watchman.steps,
        virtual_seconds: seconds,
        node_days: seconds * f64::from(u32::try_from(nodes).unwrap_or(u32::MAX)) / 86_400.0,
        transcript_hash: gate.transcript_hash(),
        violations: std::mem::take(&mut watchman.violations),
    };
    stop.cancel();
    Baseline { outcome, end, deletes, settled_after: u32::try_from(settled_after).unwrap_or(u32::MAX) }
}

/// The processes of the operator, one after the other.
struct Operator {
    stage: Stage,
    gate: Gate,
    clock: HostClock,
}

impl Operator {
    async fn live_and_live_again(self) {
        loop {
            let (client, life) = self.gate.client();
            let stop = CancellationToken::new();
            let identity = format!("replica-{life}");
            let lease = lease::Settings::new(world::NAMESPACE, "bivouac", identity.clone());
            let options = process::Options {
                controllers: self.stage.controllers.clone(),
                admin: None,
                lease: self.stage.scenario.leader_election.then_some(lease),
                identity,
            };
            let clock = Arc::new(self.clock.clone());
            let running = tokio::spawn(process::operate(client, clock, options, stop.clone()));
            let ended = running.abort_handle();
            tokio::select! {
                () = self.gate.crashed() => {}
                // It gave up by itself, for example because the API server was away for too long.
                _ = running => {}
            }
            ended.abort();
            stop.cancel();
            sleep(REBIRTH).await;
        }
    }
}

/// What goes wrong at a given time.
async fn strike(fault: Fault, clock: HostClock, admin: Speaker, start: Instant) {
    let at = |second: u32| sleep_until(start + Duration::from_secs(u64::from(second)));
    match fault {
        Fault::Clock { at: second, by } => {
            at(second).await;
            clock.jump(by);
        }
        Fault::Leader { at: second } => {
            at(second).await;
            let until = Instant::now() + REIGN;
            while Instant::now() < until {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": { "name": "bivouac", "namespace": world::NAMESPACE },
                    "spec": { "holderIdentity": "rival", "leaseDurationSeconds": 15, "leaseTransitions": 1,
                        "renewTime": format!("2026-01-01T12:00:{:02}.000000Z", start.elapsed().as_secs() % 60) },
                });
                // The lease may not be there yet, and then there is nothing to take.
                let _ = world::apply(&admin, &lease).await;
                sleep(Duration::from_secs(2)).await;
            }
        }
        _ => {}
    }
}

async fn keep_watch(server: ApiServer, watchman: Rc<RefCell<Watchman>>) {
    let store = server.store();
    let mut seen = store.revision();
    while store.reached(seen + 1).await.is_ok() {
        seen = store.revision();
        watchman.borrow_mut().look();
    }
}

/// Waits until nobody writes any more. The answer is whether that was in time.
async fn settle(scenario: &Scenario, gate: &Gate, watchman: &RefCell<Watchman>) -> bool {
    let allowed = Duration::from_secs(u64::from(scenario.settles_within)) + STILL;
    timeout(allowed, async {
        loop {
            let (last, before) = (gate.last_write(), watchman.borrow().newest);
            sleep(STILL).await;
            if gate.last_write() == last && watchman.borrow().newest == before {
                return;
            }
        }
    })
    .await
    .is_ok()
}

/// G4: once settled, nothing is written.
async fn disturbed_quiet(gate: &Gate, watchman: &RefCell<Watchman>) -> Option<String> {
    let (last, before) = (gate.last_write(), watchman.borrow().newest);
    sleep(QUIET).await;
    if gate.last_write() == last && watchman.borrow().newest == before {
        return None;
    }
    Some(format!("G4: the settled world was written to again, last {}", gate.last_path()))
}

async fn unmet(expectation: &Expectation, admin: &Speaker) -> Option<String> {
    if let Some(of) = &expectation.absent {
        return match world::get(admin, of).await {
            Ok(None) => None,
            Ok(Some(_)) => Some(format!("{} {} must be gone and is there", of.kind, of.name)),
            Err(error) => Some(format!("{error:#}")),
        };
    }
    let of = expectation.exists.as_ref()?;
    match world::get(admin, of).await {
        Ok(None) => Some(format!("{} {} must be there and is not", of.kind, of.name)),
        Ok(Some(object)) => match &expectation.has {
            Some(wanted) if !end::has(&object, wanted) => {
                let status = object.get("status").cloned().unwrap_or_default();
                Some(format!(
                    "{} {} is not as expected: it must have {wanted}; its status is {status}",
                    of.kind, of.name
                ))
            }
            _ => None,
        },
        Err(error) => Some(format!("{error:#}")),
    }
}

/// Reads a scenario's controllers.
pub fn controllers(selection: &str) -> Result<Vec<Registration>> {
    #[cfg(feature = "planted")]
    if let Some(bug) = selection.strip_prefix("planted:") {
        return Ok(vec![crate::planted::registration(bug)?]);
    }
    let defaults = bivouac::cli::ControllerOptions::default();
    Ok(bivouac_runtime::registry::select(&bivouac::operator::controllers(&defaults), selection)?)
}
