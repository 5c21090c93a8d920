// SPDX-License-Identifier: Apache-2.0
//! How many passed, what failed, and what could not run.

use std::fmt;
use std::iter::Sum;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: usize,
    failures: Vec<String>,
    not_run: Vec<String>,
}

// === impl Tally ===

impl Tally {
    pub fn passes(passed: usize) -> Self {
        Self { passed, ..Self::default() }
    }

    pub fn failure(what: &str) -> Self {
        let mut tally = Self::default();
        tally.fail(what);
        tally
    }

    pub fn failed(&self) -> usize {
        self.failures.len()
    }

    pub fn pass(&mut self) {
        self.passed += 1;
    }

    pub fn fail(&mut self, what: &str) {
        self.failures.push(what.to_owned());
    }

    /// Counts a check by its outcome and says what is wrong.
    pub fn count(&mut self, name: &str, outcome: anyhow::Result<()>) {
        match outcome {
            Ok(()) => self.pass(),
            Err(error) => {
                println!("{name}: {error:#}");
                self.fail(name);
            }
        }
    }

    /// What cannot run says so loudly.
    pub fn skip(&mut self, what: &str) {
        println!("NOT RUN {what}");
        self.not_run.push(what.to_owned());
    }

    /// One line for each failure and each check that did not run.
    pub fn details(&self) -> impl Iterator<Item = String> {
        let not_run = self.not_run.iter().map(|what| format!("NOT RUN {what}"));
        not_run.chain(self.failures.iter().map(|what| format!("FAILED {what}")))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed())?;
        if self.not_run.is_empty() { Ok(()) } else { write!(f, ", {} not run", self.not_run.len()) }
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, mut one| {
            sum.passed += one.passed;
            sum.failures.append(&mut one.failures);
            sum.not_run.append(&mut one.not_run);
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn nothing_is_lost_in_a_sum() {
        let mut one = Tally::passes(2);
        one.skip("contracts: no folder");
        let sum: Tally = [one, Tally::failure("fmt"), Tally::passes(3)].into_iter().sum();
        assert_eq!(sum.to_string(), "5 passed, 1 failed, 1 not run");
        assert_eq!(sum.details().collect::<Vec<_>>(), ["NOT RUN contracts: no folder", "FAILED fmt"]);
    }
}
