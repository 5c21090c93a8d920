// SPDX-License-Identifier: Apache-2.0
//! What can go wrong in a pass, and what each means for the next one.

use std::time::Duration;

use crate::fence::Fenced;

/// Why a pass did not reach its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing}: {}", plain(.source))]
    Api {
        /// What was tried, for example `apply RoleBinding team-a/admin`.
        doing: String,
        source: Box<kube::Error>,
    },
    #[error("the pass took longer than {}s and was given up", .0.as_secs())]
    TooSlow(Duration),
    #[error("the pass panicked: {0}")]
    Panicked(String),
    #[error("the plan did not settle after {0} rounds of writing")]
    Restless(usize),
    #[error("cannot {doing}: {why}")]
    Outside {
        /// The effect that failed.
        doing: String,
        why: String,
        category: Category,
        after: Option<Duration>,
    },
}

/// A closed set: it labels metrics and decides how the pass is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RateLimited,
    Server,
    Transport,
    NotLeader,
    TooSlow,
    Bug,
}

impl Category {
    pub fn as_str(self) -> &'static str {
        match self {
            Category::Conflict => "Conflict",
            Category::Forbidden => "Forbidden",
            Category::Invalid => "Invalid",
            Category::NotFound => "NotFound",
            Category::RateLimited => "RateLimited",
            Category::Server => "ServerError",
            Category::Transport => "Unreachable",
            Category::NotLeader => "NotLeader",
            Category::TooSlow => "TooSlow",
            Category::Bug => "Bug",
        }
    }
}

impl Error {
    pub fn api(doing: impl Into<String>, source: kube::Error) -> Self {
        Error::Api { doing: doing.into(), source: Box::new(source) }
    }

    pub fn category(&self) -> Category {
        match self {
            Error::Api { source, .. } => category(source),
            Error::TooSlow(_) => Category::TooSlow,
            Error::Panicked(_) | Error::Restless(_) => Category::Bug,
            Error::Outside { category, .. } => *category,
        }
    }

    /// The delay the other side asked for, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => {
                    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
                }
                _ => None,
            },
            Error::Outside { after, .. } => *after,
            _ => None,
        }
    }
}

pub fn category(error: &kube::Error) -> Category {
    match error {
        kube::Error::Api(status) => match status.code {
            404 => Category::NotFound,
            409 => Category::Conflict,
            401 | 403 => Category::Forbidden,
            // Another object took the name since we looked: the server says that a UID cannot change.
            422 if names_field(status, "metadata.uid") => Category::Conflict,
            400 | 413 | 422 => Category::Invalid,
            429 => Category::RateLimited,
            _ => Category::Server,
        },
        kube::Error::Service(source) if source.is::<Fenced>() => Category::NotLeader,
        kube::Error::SerdeError(_) => Category::Bug,
        _ => Category::Transport,
    }
}

fn names_field(status: &kube::core::Status, field: &str) -> bool {
    status.details.as_ref().is_some_and(|details| details.causes.iter().any(|cause| cause.field == field))
}

/// The words of the server alone: kube's own Display repeats itself and prints Debug forms.
pub fn plain(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) => format!("{} {}", status.code, status.reason),
        other => other.to_string(),
    }
}
