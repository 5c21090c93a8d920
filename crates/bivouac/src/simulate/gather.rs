// SPDX-License-Identifier: Apache-2.0
//! What the processes of the simulation tell, put together.

use std::{collections::BTreeMap, time::Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::report::{Counts, Line};

/// A scenario that can be played.
#[derive(Debug, Serialize, Deserialize)]
pub struct Listed {
    pub scenario: String,
    pub about: String,
}

/// One scenario, over all processes.
#[derive(Clone, Debug, Default)]
pub struct Story {
    pub counts: Counts,
    pub wall_seconds: f64,
    /// By process.
    pub hashes: BTreeMap<u32, String>,
    pub violations: Vec<String>,
    /// The seeds of the runs that went wrong, and the commands that play them again.
    pub failures: Vec<(u64, String)>,
}

/// Everything so far.
#[derive(Debug)]
pub struct Gathered {
    pub stories: BTreeMap<String, Story>,
    order: Vec<String>,
    seed: u64,
    jobs: u32,
    /// What each process does now, on top of what it has done.
    running: BTreeMap<u32, Counts>,
    pub started: Instant,
}

impl Gathered {
    pub fn new(order: Vec<String>, seed: u64, jobs: u32) -> Self {
        let (stories, running) = (BTreeMap::new(), BTreeMap::new());
        Self { stories, order, seed, jobs, running, started: Instant::now() }
    }

    pub fn take(&mut self, job: u32, line: Line) {
        match line {
            Line::Progress(counts) => drop(self.running.insert(job, counts)),
            Line::Failure(failure) => {
                let story = self.stories.entry(failure.scenario).or_default();
                story.violations.extend(failure.violations);
                story.failures.push((failure.seed, failure.replay));
            }
            Line::Done(summary) => {
                self.running.remove(&job);
                let story = self.stories.entry(summary.scenario).or_default();
                story.counts.add(&summary.counts);
                story.wall_seconds = story.wall_seconds.max(summary.wall_seconds);
                story.hashes.insert(job, summary.transcript_hash);
            }
        }
    }

    pub fn failed(&self) -> bool {
        self.stories.values().any(|story| !story.violations.is_empty())
    }

    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.stories.values().for_each(|story| total.add(&story.counts));
        self.running.values().for_each(|counts| total.add(counts));
        total
    }

    /// One object, or a list if several scenarios were asked for.
    pub fn json(&self) -> Value {
        let mut all: Vec<Value> = self.order.iter().map(|name| self.story(name)).collect();
        if all.len() == 1 { all.pop().unwrap_or_default() } else { Value::Array(all) }
    }

    fn story(&self, name: &str) -> Value {
        let story = self.stories.get(name).cloned().unwrap_or_default();
        let hashes: Vec<&str> = story.hashes.values().filter(|hash| !hash.is_empty()).map(String::as_str).collect();
        let failure = |(seed, replay): &(u64, String)| json!({ "seed": seed, "replay": replay });
        json!({
            "scenario": name,
            "seed": self.seed,
            "transcript_hash": hashes.join("-"),
            "jobs": self.jobs,
            "runs": story.counts.runs,
            "faults": story.counts.faults,
            "steps": story.counts.steps,
            "crash_points": story.counts.crash_points,
            "virtual_seconds": story.counts.virtual_seconds,
            "node_days": story.counts.node_days,
            "wall_seconds": story.wall_seconds,
            "violations": story.violations,
            "failures": story.failures.iter().map(failure).collect::<Vec<_>>(),
        })
    }
}
