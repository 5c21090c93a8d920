// SPDX-License-Identifier: Apache-2.0
//! What a run without faults came to: the measure of all others.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{end::End, outcome::Outcome};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Baseline {
    pub outcome: Outcome,
    pub end: End,
    /// What the operator deleted, by path.
    pub deletes: BTreeSet<String>,
    /// Seconds until the world was settled.
    pub settled_after: u32,
}
