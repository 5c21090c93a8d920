// SPDX-License-Identifier: Apache-2.0
//! Everything that is there for a wish, and what keeps the rest from being bought.

use std::collections::BTreeMap;
use std::fmt;

use bivouac_core::Money;
use jiff::Timestamp;

use crate::catalogue::{Catalogue, Snapshot};
use crate::memory::Refusal;
use crate::offer::Flaw;
use crate::select::{Choice, Sieve, Standing};
use crate::wish::{Situation, Wish};

/// Counts over all machines that are as the wish wants them. An offer counts for the first reason that fits, in the
/// order of the fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// What can be bought, best first.
    pub open: Vec<Choice>,
    /// Prices that nobody should believe, and what cannot be ordered.
    pub flawed: BTreeMap<Flaw, usize>,
    /// Sold, but not where it is wanted.
    pub elsewhere: usize,
    /// From price lists that are too old.
    pub stale: usize,
    pub over_price: usize,
    /// The cheapest of those.
    pub cheapest_over: Option<Money>,
    /// Refused lately.
    pub resting: BTreeMap<Refusal, usize>,
    /// When the first of those may be asked again.
    pub wakes: Option<Timestamp>,
    /// Keys with fewer values to choose from than `minValues` asks for: found, wanted.
    pub lacks: Vec<(String, usize, usize)>,
    pub snapshot: Snapshot,
}

// === impl Catalogue ===

impl Catalogue {
    pub fn survey(&self, wish: &Wish, situation: Situation<'_>) -> Survey {
        Survey::of(&Sieve::new(self, wish, situation))
    }
}

// === impl Survey ===

impl Survey {
    pub(crate) fn of(sieve: &Sieve<'_>) -> Self {
        let mut survey = Self::empty(sieve.catalogue.snapshot());
        for found in &sieve.lists {
            for standing in sieve.standings(found) {
                match standing {
                    Standing::Flawed(flaw) => *survey.flawed.entry(flaw).or_default() += 1,
                    Standing::Elsewhere => survey.elsewhere += 1,
                    Standing::Stale => survey.stale += 1,
                    Standing::TooDear(price) => {
                        survey.over_price += 1;
                        survey.cheapest_over = Some(survey.cheapest_over.map_or(price, |best| best.min(price)));
                    }
                    Standing::Resting(rest) => {
                        *survey.resting.entry(rest.why).or_default() += 1;
                        survey.wakes = Some(survey.wakes.map_or(rest.until, |first| first.min(rest.until)));
                    }
                    Standing::Open(offer) => {
                        let score = sieve.wish.policy.score(offer.price, found.priority);
                        survey.open.push(Choice { offer: offer.id, price: offer.price, score });
                    }
                }
            }
        }
        survey.open.sort_unstable_by_key(|choice| (choice.score, choice.offer));
        survey.lacks = sieve.lacks();
        survey
    }

    fn empty(snapshot: Snapshot) -> Self {
        Self {
            open: Vec::new(),
            flawed: BTreeMap::new(),
            elsewhere: 0,
            stale: 0,
            over_price: 0,
            cheapest_over: None,
            resting: BTreeMap::new(),
            wakes: None,
            lacks: Vec::new(),
            snapshot,
        }
    }

    /// How many have a price that nobody should believe.
    pub fn doubtful(&self) -> usize {
        self.flawed.iter().filter(|(flaw, _)| flaw.is_doubt()).map(|(_, count)| count).sum()
    }
}

/// Why nothing can be bought, as one sentence.
impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons: Vec<String> = Vec::new();
        for (key, found, wanted) in &self.lacks {
            reasons.push(format!("{key} has {found} values to choose from and {wanted} must be left"));
        }
        if let Some(cheapest) = self.cheapest_over {
            reasons.push(format!(
                "{} above the highest price allowed, the cheapest at ${cheapest} an hour",
                self.over_price
            ));
        }
        for (why, count) in &self.resting {
            reasons.push(format!("{count} not asked again yet, because {}", why.in_words()));
        }
        if self.elsewhere > 0 {
            reasons.push(format!("{} only in other places", self.elsewhere));
        }
        if self.stale > 0 {
            reasons.push(format!("{} in price lists that are too old", self.stale));
        }
        for (flaw, count) in &self.flawed {
            reasons.push(format!("{count} left out, because {}", flaw.in_words()));
        }
        match reasons.as_slice() {
            [] if self.open.is_empty() => f.write_str("nobody sells such a machine"),
            [] => write!(f, "{} offers", self.open.len()),
            some => write!(f, "no offer can be taken: {}", some.join("; ")),
        }
    }
}

impl std::error::Error for Survey {}
