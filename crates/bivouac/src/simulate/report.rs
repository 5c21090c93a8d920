// SPDX-License-Identifier: Apache-2.0
//! What `bivouac-sim` tells, a line of JSON each. Both programs have it from here.

use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Line {
    Progress(Counts),
    Failure(Failure),
    /// A scenario is through.
    Done(Summary),
}

/// What was done so far, by this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    pub runs: u64,
    pub faults: u64,
    pub crash_points: u64,
    pub steps: u64,
    pub virtual_seconds: f64,
    pub node_days: f64,
}

/// A run that went wrong, with the fewest faults that make it go wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub scenario: String,
    pub seed: u64,
    pub faults: Vec<String>,
    pub violations: Vec<String>,
    /// The command that plays it again.
    pub replay: String,
}

/// What came of one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub scenario: String,
    pub seed: u64,
    /// Over all runs. The same in every process for the same trials.
    pub transcript_hash: String,
    pub counts: Counts,
    pub failures: u64,
    pub wall_seconds: f64,
}

impl Counts {
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.faults += other.faults;
        self.crash_points += other.crash_points;
        self.steps += other.steps;
        self.virtual_seconds += other.virtual_seconds;
        self.node_days += other.node_days;
    }
}
