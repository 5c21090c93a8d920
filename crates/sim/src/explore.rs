// SPDX-License-Identifier: Apache-2.0
//! Which trials to make of a scenario.

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{Trial, baseline::Baseline, fault::Fault, scenario::Scenario};

/// How long a watch lags or looks away, in seconds: longer than a pass takes, shorter than anybody's patience.
const AWAY: u32 = 30;
/// Most faults in one random trial.
const MOST: usize = 6;

/// Ways to disturb a scenario at every place there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Random faults, several at once, decided by the seed
    Random,
    /// The operator dies before and after each of its calls
    Crashes,
    /// Each write is answered with each kind of error, done or not done
    Errors,
    /// All watches lag behind from each event on
    Stale,
    /// What happens after each event is never seen, only what came of it
    Unobserved,
}

/// All trials of a mode, for one seed. The undisturbed run says how many places there are.
pub fn trials(mode: Mode, scenario: &Scenario, seed: u64, baseline: &Baseline) -> Vec<Trial> {
    let (calls, events) = (baseline.outcome.calls, baseline.outcome.events);
    let one = |fault: Fault| Trial { seed, faults: vec![fault] };
    match mode {
        Mode::Random => vec![random(scenario, seed, baseline)],
        Mode::Crashes => {
            (1..=calls).flat_map(|call| [false, true].map(|after| one(Fault::Crash { call, after }))).collect()
        }
        Mode::Errors => (1..=calls).flat_map(errors).map(one).collect(),
        Mode::Stale => (1..=events).map(|event| one(Fault::Stale { event, seconds: AWAY })).collect(),
        Mode::Unobserved => (1..=events).map(|event| one(Fault::Unobserved { event, seconds: AWAY })).collect(),
    }
}

/// Who was not served may also have been served.
fn errors(call: u64) -> Vec<Fault> {
    let refused = [(409, false), (429, false), (500, false), (500, true), (503, true)];
    let refused = refused.map(|(code, applied)| Fault::Refused { call, code, applied });
    refused.into_iter().chain([false, true].map(|applied| Fault::Lost { call, applied })).collect()
}

fn random(scenario: &Scenario, seed: u64, baseline: &Baseline) -> Trial {
    let mut rng = StdRng::seed_from_u64(seed);
    let count = rng.random_range(1..=MOST);
    let Baseline { outcome, settled_after, .. } = baseline;
    let fault = |_| Fault::random(&mut rng, outcome.calls, outcome.events, *settled_after, scenario.leader_election);
    let mut faults: Vec<Fault> = (0..count).map(fault).collect();
    faults.sort();
    Trial { seed, faults }
}
