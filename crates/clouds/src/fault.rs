// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with a cloud, as a closed list: whoever buys must know what to do about each.

use std::fmt;
use std::time::Duration;

use bivouac_market::Refusal;

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// There is no such thing, and nobody pays for it.
    NotFound,
    /// None left of this offer.
    NoCapacity,
    /// The account may not have more.
    Quota,
    /// The credential is wrong, or has no right to this.
    Unauthorized,
    /// The account has no money.
    Payment,
    /// Too many questions. The cloud says when to come back, or nobody knows.
    RateLimited { after: Option<Duration> },
    /// The cloud will never accept this as it is.
    Invalid,
    /// It is in the way of something that is there already.
    Conflict,
    /// Nothing happened; try again later.
    Transient,
    /// Something may have happened. Look before doing anything else.
    Ambiguous,
}

/// Why a cloud did not do what it was asked for, in words that hold no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub outcome: Outcome,
    pub cloud: &'static str,
    pub operation: Operation,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// What the cloud says, or what happened instead.
    pub says: String,
}

/// What a cloud is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
pub enum Operation {
    Offers,
    Launch,
    Describe,
    List,
    Terminate,
    Verify,
}

// === impl Outcome ===

impl Outcome {
    /// As metrics and events name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::NoCapacity => "NoCapacity",
            Self::Quota => "Quota",
            Self::Unauthorized => "Unauthorized",
            Self::Payment => "Payment",
            Self::RateLimited { .. } => "RateLimited",
            Self::Invalid => "Invalid",
            Self::Conflict => "Conflict",
            Self::Transient => "Transient",
            Self::Ambiguous => "Ambiguous",
        }
    }

    /// What the market remembers of a launch that ended like this.
    pub fn refusal(self) -> Option<Refusal> {
        match self {
            Self::NoCapacity => Some(Refusal::Capacity),
            Self::Quota => Some(Refusal::Quota),
            Self::Payment => Some(Refusal::Payment),
            Self::Unauthorized => Some(Refusal::Unauthorized),
            _ => None,
        }
    }

    /// Completes "the cloud did not do it, because …".
    fn in_words(self) -> String {
        match self {
            Self::NotFound => "there is no such thing".to_owned(),
            Self::NoCapacity => "it has none left".to_owned(),
            Self::Quota => "the account may not have more".to_owned(),
            Self::Unauthorized => "the credential is not accepted for this".to_owned(),
            Self::Payment => "the account has no money".to_owned(),
            Self::RateLimited { after: Some(after) } => {
                format!("it was asked too often; again in {} s", after.as_secs())
            }
            Self::RateLimited { after: None } => "it was asked too often".to_owned(),
            Self::Invalid => "it does not accept the request".to_owned(),
            Self::Conflict => "something is in the way".to_owned(),
            Self::Transient => "it cannot at the moment".to_owned(),
            Self::Ambiguous => "nobody knows whether it did; it will be looked for".to_owned(),
        }
    }
}

// === impl Operation ===

impl Operation {
    pub const ALL: [Self; 6] = [Self::Offers, Self::Launch, Self::Describe, Self::List, Self::Terminate, Self::Verify];

    /// As metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Offers => "offers",
            Self::Launch => "launch",
            Self::Describe => "describe",
            Self::List => "list",
            Self::Terminate => "terminate",
            Self::Verify => "verify",
        }
    }

    /// Whether doing it twice is another thing than doing it once.
    pub fn spends(self) -> bool {
        self == Self::Launch
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Offers => "read the offers",
            Self::Launch => "launch a machine",
            Self::Describe => "look at a machine",
            Self::List => "list our machines",
            Self::Terminate => "end a machine",
            Self::Verify => "check the credential",
        })
    }
}

// === impl Fault ===

/// Ending what is gone already is ending it.
pub fn gone_is_done<T>(answer: Result<T, Fault>) -> Result<(), Fault> {
    match answer {
        Err(fault) if fault.outcome != Outcome::NotFound => Err(fault),
        _ => Ok(()),
    }
}

/// `lambda did not launch a machine, because it has none left (400: Not enough capacity)`
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} did not {}, because {}", self.cloud, self.operation, self.outcome.in_words())?;
        match (self.status, self.says.as_str()) {
            (Some(status), "") => write!(f, " (status {status})"),
            (Some(status), says) => write!(f, " (status {status}: {says})"),
            (None, "") => Ok(()),
            (None, says) => write!(f, " ({says})"),
        }
    }
}

impl std::error::Error for Fault {}
