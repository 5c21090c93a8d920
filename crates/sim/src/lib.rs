// SPDX-License-Identifier: Apache-2.0
//! Deterministic simulation: the real controllers on the embedded API server, in virtual time, with everything that can
//! go wrong going wrong. One seed decides everything, so a failure can be played again.
//!
//! A [`Trial`] is one scenario, one seed and a list of faults. [`run`] plays it and gives an [`Outcome`]; what is wrong
//! in it is a list of violations. [`explore`] makes trials: every crash point of a scenario, every stale view, random
//! faults. [`shrink`] finds the fewest faults that still fail.

pub mod baseline;
pub mod clock;
pub mod end;
pub mod explore;
pub mod fault;
pub mod gate;
pub mod generate;
pub mod invariants;
pub mod outcome;
#[cfg(feature = "planted")]
pub mod planted;
pub mod run;
pub mod scenario;
pub mod shrink;
pub mod tamper;
pub mod timeline;
pub mod world;
pub mod yard;

pub use fault::Fault;
pub use outcome::Outcome;
pub use scenario::Scenario;

/// One run to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    pub seed: u64,
    pub faults: Vec<Fault>,
}
