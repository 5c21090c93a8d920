// SPDX-License-Identifier: Apache-2.0
//! What can go wrong, and how people write it.

use std::{fmt, str::FromStr};

use rand::{Rng, seq::IndexedRandom};

/// One thing that goes wrong. Calls and events are counted from 1, over the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// The operator's process ends at this call, before it left or after it arrived.
    Crash { call: u64, after: bool },
    /// The API server answers with an error, having done what was asked or not.
    Refused { call: u64, code: u16, applied: bool },
    /// The connection breaks, before the request arrived or before the answer came back.
    Lost { call: u64, applied: bool },
    /// The call takes this long.
    Slow { call: u64, seconds: u32 },
    /// From this event on, all watches stand still for a while.
    Stale { event: u64, seconds: u32 },
    /// From this event on, watches tell nothing for a while, and then that their history is gone: what was in between
    /// is never seen.
    Unobserved { event: u64, seconds: u32 },
    /// The watch ends at this event.
    Cut { event: u64 },
    /// The clock of the operator's host jumps.
    Clock { at: u32, by: i64 },
    /// Another replica takes the lease away.
    Leader { at: u32 },
}

impl Fault {
    /// Something that can happen in a run of this many calls and events, and seconds until it is settled.
    pub fn random(rng: &mut impl Rng, calls: u64, events: u64, seconds: u32, election: bool) -> Self {
        let call = rng.random_range(1..=calls.max(1));
        let event = rng.random_range(1..=events.max(1));
        let at = rng.random_range(0..=seconds);
        match rng.random_range(0..if election { 10 } else { 9 }) {
            0 | 1 => Self::Crash { call, after: rng.random() },
            2 => Self::Refused { call, code: *[409, 410, 429, 500, 503].choose(rng).unwrap_or(&500), applied: false },
            3 => Self::Refused { call, code: *[500, 503, 504].choose(rng).unwrap_or(&500), applied: true },
            4 => Self::Lost { call, applied: rng.random() },
            5 => Self::Slow { call, seconds: rng.random_range(1..90) },
            6 => Self::Stale { event, seconds: rng.random_range(1..120) },
            7 => Self::Unobserved { event, seconds: rng.random_range(1..120) },
            8 if rng.random() => Self::Cut { event },
            8 => Self::Clock { at, by: rng.random_range(-7_200..7_200) },
            _ => Self::Leader { at },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let applied = |applied: bool| if applied { "-applied" } else { "" };
        match self {
            Self::Crash { call, after: false } => write!(f, "crash-before@{call}"),
            Self::Crash { call, after: true } => write!(f, "crash-after@{call}"),
            Self::Refused { call, code, applied: done } => write!(f, "{code}{}@{call}", applied(*done)),
            Self::Lost { call, applied: done } => write!(f, "lost{}@{call}", applied(*done)),
            Self::Slow { call, seconds } => write!(f, "slow@{call}+{seconds}"),
            Self::Stale { event, seconds } => write!(f, "stale@{event}+{seconds}"),
            Self::Unobserved { event, seconds } => write!(f, "unobserved@{event}+{seconds}"),
            Self::Cut { event } => write!(f, "cut@{event}"),
            Self::Clock { at, by } => write!(f, "clock@{at}{by:+}"),
            Self::Leader { at } => write!(f, "leader@{at}"),
        }
    }
}

/// A fault that nobody knows.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownFault(String);

impl fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a fault. Faults are crash-before@CALL, crash-after@CALL, CODE@CALL, CODE-applied@CALL, \
             lost@CALL, lost-applied@CALL, slow@CALL+SECONDS, stale@EVENT+SECONDS, unobserved@EVENT+SECONDS, \
             cut@EVENT, clock@SECOND+SECONDS and leader@SECOND",
            self.0
        )
    }
}

impl std::error::Error for UnknownFault {}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        parse(text).ok_or_else(|| UnknownFault(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Fault> {
    let (word, place) = text.split_once('@')?;
    let split = place.find(['+', '-']).unwrap_or(place.len());
    let (at, by) = place.split_at(split);
    let by = (!by.is_empty()).then_some(by);
    let seconds = || by?.strip_prefix('+')?.parse().ok();
    let (word, applied) = word.strip_suffix("-applied").map_or((word, false), |word| (word, true));
    let fault = match (word, by) {
        ("crash-before", None) => Fault::Crash { call: at.parse().ok()?, after: false },
        ("crash-after", None) => Fault::Crash { call: at.parse().ok()?, after: true },
        ("lost", None) => Fault::Lost { call: at.parse().ok()?, applied },
        ("slow", _) => Fault::Slow { call: at.parse().ok()?, seconds: seconds()? },
        ("stale", _) => Fault::Stale { event: at.parse().ok()?, seconds: seconds()? },
        ("unobserved", _) => Fault::Unobserved { event: at.parse().ok()?, seconds: seconds()? },
        ("cut", None) => Fault::Cut { event: at.parse().ok()? },
        ("clock", Some(by)) => Fault::Clock { at: at.parse().ok()?, by: by.parse().ok()? },
        ("leader", None) => Fault::Leader { at: at.parse().ok()? },
        (code, None) => {
            let code = code.parse().ok().filter(|code| (400..600).contains(code))?;
            Fault::Refused { call: at.parse().ok()?, code, applied }
        }
        _ => return None,
    };
    // Words that take no "-applied" must not have it.
    (fault.to_string() == text).then_some(fault)
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn faults_are_read_as_they_are_written() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..2_000 {
            let fault = Fault::random(&mut rng, 500, 300, 900, true);
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        for wrong in ["crash@3", "cut@", "200@4", "cut-applied@4", "slow@3", "clock@5", "409@-3", "stale@4-3", ""] {
            let refused = wrong.parse::<Fault>().unwrap_err().to_string();
            assert!(refused.contains("is not a fault"), "{wrong}");
        }
    }
}
