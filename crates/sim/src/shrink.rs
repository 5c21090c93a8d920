// SPDX-License-Identifier: Apache-2.0
//! Finding the fewest faults that still fail.

use crate::{Trial, fault::Fault};

/// Leaves out faults as long as the rest still fails. `fails` plays a trial.
pub fn shrink(trial: &Trial, mut fails: impl FnMut(&Trial) -> bool) -> Trial {
    let mut kept = trial.faults.clone();
    // Halves first, then smaller parts: most faults of a random list have nothing to do with it.
    let mut size = kept.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < kept.len() {
            let fewer: Vec<Fault> = kept
                .iter()
                .enumerate()
                .filter(|(n, _)| *n < at || *n >= at + size)
                .map(|(_, one)| one.clone())
                .collect();
            if fewer.len() < kept.len() && fails(&Trial { seed: trial.seed, faults: fewer.clone() }) {
                kept = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    Trial { seed: trial.seed, faults: kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let cut = |event| Fault::Cut { event };
        let trial = Trial { seed: 1, faults: (1..=9).map(cut).collect() };
        let (mut runs, needed) = (0, [cut(3), cut(8)]);
        let least = shrink(&trial, |trial| {
            runs += 1;
            needed.iter().all(|one| trial.faults.contains(one))
        });
        assert_eq!(least.faults, needed);
        assert!(runs < 30, "{runs}");
        let alone = shrink(&trial, |_| true);
        assert_eq!(alone.faults, []);
    }
}
