// SPDX-License-Identifier: Apache-2.0
//! Pods that are brokers of one Flux cluster: they meet, the lead runs the program, and all end with it.
//!
//! A broker reads its configuration when it starts. What it needs later is kept in the status of its pod: its certificate
//! in the id of the container, and how far the lead has come in the condition [`QUORUM`], which only leads with a program
//! have.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodCondition, PodStatus};

use super::{
    conditions,
    configuration::{Configuration, contains, host, runner},
    container::{after, ended, started_at},
    pod::Life,
    script::Script,
};
use crate::{
    kinds::{View, subdomain_of},
    shelf::Key,
    workload::{condition, time},
};

const QUORUM: &str = "simulator.bivouac.dev/quorum";
const BEGUN: &str = "ProgramBegun";
const ENDED: &str = "ProgramEnded";
/// What stands before the certificate in the id of a container.
const MARK: char = '+';
/// How often it is told who is missing. A crowd that comes at once is told once.
const NEWS: Duration = Duration::from_secs(10);

/// A container that runs a broker, before it does its next step.
#[derive(Debug)]
pub struct Broker<'a> {
    pod: &'a Pod,
    container: &'a Container,
    before: Option<&'a ContainerStatus>,
    view: &'a View,
    now: Timestamp,
}

/// The pods to look at again when this one came, changed or went.
pub fn concerned(pod: &Pod, view: &View) -> Vec<Key> {
    let Some(state) = state(pod) else { return Vec::new() };
    let key = |other: &Arc<Pod>| Key::of(&other.metadata);
    if has_ended(pod) {
        crew(pod, view).filter(|other| self::state(other).and_then(started_at).is_some()).map(key).collect()
    } else if started_at(state).is_some() {
        crew(pod, view)
            .filter(|other| condition(other, QUORUM).is_some_and(|one| wish(one).is_some()))
            .map(key)
            .collect()
    } else {
        Vec::new()
    }
}

/// Those that a broker can find by their names.
fn crew<'a>(pod: &Pod, view: &'a View) -> impl Iterator<Item = &'a Arc<Pod>> + use<'a> {
    subdomain_of(pod).into_iter().flat_map(|subdomain| view.pods_under(&subdomain))
}

/// What is known of the broker in a pod.
fn state(pod: &Pod) -> Option<&ContainerStatus> {
    let broker = pod.spec.as_ref()?.containers.iter().find(|one| runner(one).is_some())?;
    pod.status.as_ref()?.container_statuses.iter().flatten().find(|one| one.name == broker.name)
}

fn certificate(state: &ContainerStatus) -> Option<&str> {
    state.container_id.as_deref()?.split_once(MARK).map(|(_, certificate)| certificate)
}

/// Whether the program of a lead has come to its end.
fn has_ended(pod: &Pod) -> bool {
    condition(pod, QUORUM).is_some_and(|one| one.reason.as_deref() == Some(ENDED))
}

/// How many brokers a lead waits for, and of which hosts; nothing if it does not wait.
fn wish(quorum: &PodCondition) -> Option<(usize, &str)> {
    let words = quorum.message.as_deref().filter(|_| quorum.status == "False")?;
    let (count, hosts) = words.split_once(" of ")?.1.split_once(" brokers of ")?;
    Some((count.parse().ok()?, hosts))
}

fn words(here: usize, count: usize, hosts: &str) -> String {
    format!("{here} of {count} brokers of {hosts}")
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

impl<'a> Broker<'a> {
    pub fn of(
        pod: &'a Pod,
        container: &'a Container,
        before: Option<&'a ContainerStatus>,
        view: &'a View,
        now: Timestamp,
    ) -> Option<Self> {
        runner(container).map(|_| Self { pod, container, before, view, now })
    }

    fn configuration(&self) -> Result<Configuration, String> {
        Configuration::read(self.pod, self.container, self.view)
    }

    /// What it does, out of what the annotations say.
    pub fn direct(&self, script: Script) -> Script {
        let Some((state, since)) = self.before.and_then(|state| Some((state, started_at(state)?))) else {
            return self.start(script);
        };
        let Some(certificate) = certificate(state) else { return script };
        let mark = format!("{MARK}{certificate}");
        if script.crashes {
            return Script { mark, ..script };
        }
        match condition(self.pod, QUORUM) {
            Some(quorum) => {
                let begun = quorum.last_transition_time.as_ref().filter(|_| quorum.status == "True");
                let run = begun.zip(script.run).map(|(begun, run)| between(since, begun.0) + run);
                Script { run, mark, ..script }
            }
            None => {
                let run = self.goodbye(certificate).map(|end| between(since, end));
                Script { run, exit_code: 0, mark, ..script }
            }
        }
    }

    /// It fails at once if there is nothing to start with. How long it runs is not known yet.
    fn start(&self, script: Script) -> Script {
        match self.configuration() {
            Ok(known) => {
                let mark = format!("{MARK}{}", known.certificate);
                Script { run: script.run.filter(|_| script.crashes), mark, ..script }
            }
            Err(_) => Script { run: Some(Duration::ZERO), exit_code: 1, ..script },
        }
    }

    /// When the lead ended and said so. One that was killed says nothing.
    fn goodbye(&self, own: &str) -> Option<Timestamp> {
        let mut ends = crew(self.pod, self.view).filter(|other| has_ended(other)).filter_map(|other| state(other));
        ends.find(|state| certificate(state) == Some(own)).and_then(|state| Some(ended(state)?.finished_at.as_ref()?.0))
    }

    /// Notes in the status of the pod how far the lead has come, now that the container has done its step.
    pub fn note(&self, life: &mut Life, next: &ContainerStatus, script: &Script) {
        let ran = |one: &&ContainerStatus| started_at(one).is_some() && one.restart_count == next.restart_count;
        let ran = self.before.filter(ran).is_some();
        let was_over = self.before.is_some_and(|one| ended(one).is_some());
        if started_at(next).is_some() {
            if !ran {
                self.begin(&mut life.status);
            }
            self.wait(life, next);
        } else if ran && !script.crashes {
            change(&mut life.status, |quorum| quorum.reason = Some(ENDED.to_owned()));
        } else if ended(next).is_some()
            && !was_over
            && let Err(why) = self.configuration()
        {
            life.told.push((false, "Failed", format!("cannot start the broker: {why}")));
        }
    }

    /// A lead with a program waits first. What an earlier start has left behind does not count.
    fn begin(&self, status: &mut PodStatus) {
        conditions::remove(status, QUORUM);
        let leads = |known: &Configuration| known.has_program && known.lead == host(self.pod);
        if let Some(known) = self.configuration().ok().filter(leads) {
            let quorum = PodCondition {
                type_: QUORUM.to_owned(),
                status: "False".to_owned(),
                reason: Some("BrokersMissing".to_owned()),
                message: Some(words(0, known.quorum, &known.hosts)),
                last_transition_time: Some(time(self.now)),
                ..PodCondition::default()
            };
            conditions::put(status, quorum);
        }
    }

    /// Begins the program when enough brokers are there.
    fn wait(&self, life: &mut Life, own: &ContainerStatus) {
        let quorum = life.status.conditions.iter().flatten().find(|one| one.type_ == QUORUM).cloned();
        let Some((quorum, (count, hosts))) = quorum.as_ref().and_then(|one| Some((one, wish(one)?))) else { return };
        let here = self.present(hosts, own);
        if here >= count {
            return change(&mut life.status, |quorum| {
                quorum.status = "True".to_owned();
                quorum.reason = Some(BEGUN.to_owned());
                quorum.message = None;
                quorum.last_transition_time = Some(time(self.now));
            });
        }
        let news = Some(words(here, count, hosts)).filter(|news| quorum.message.as_ref() != Some(news));
        let next = quorum.last_probe_time.as_ref().map_or(self.now, |told| after(told.0, NEWS));
        match news {
            Some(_) if next > self.now => life.look_at(Some(next)),
            Some(news) => change(&mut life.status, |quorum| {
                quorum.message = Some(news);
                quorum.last_probe_time = Some(time(self.now));
            }),
            None => {}
        }
    }

    /// How many brokers have met: itself, and those that run with the same certificate.
    fn present(&self, hosts: &str, own: &ContainerStatus) -> usize {
        let met = |other: &&Arc<Pod>| {
            let running = state(other).filter(|state| started_at(state).is_some());
            other.metadata.deletion_timestamp.is_none() && running.and_then(certificate) == certificate(own)
        };
        let others = crew(self.pod, self.view).filter(met).map(|other| host(other));
        let all: BTreeSet<_> = others.filter(|other| contains(hosts, other)).chain([host(self.pod)]).collect();
        all.len()
    }
}

fn change(status: &mut PodStatus, change: impl FnOnce(&mut PodCondition)) {
    let quorum = status.conditions.iter_mut().flatten().find(|one| one.type_ == QUORUM);
    if let Some(quorum) = quorum {
        change(quorum);
    }
}
