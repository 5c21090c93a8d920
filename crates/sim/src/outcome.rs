// SPDX-License-Identifier: Apache-2.0
//! What a run came to.

use serde::{Deserialize, Serialize};

/// Everything that is told about one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Calls of the operator until the world was settled. Each is a place to crash.
    pub calls: u64,
    /// Watch events it was told until then. Each is a place to look away.
    pub events: u64,
    /// Changes of the store, by anybody.
    pub steps: u64,
    pub virtual_seconds: f64,
    /// Days of simulated nodes that passed.
    pub node_days: f64,
    /// The same in every process for the same trial.
    pub transcript_hash: String,
    pub violations: Vec<String>,
}
