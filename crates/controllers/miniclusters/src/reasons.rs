// SPDX-License-Identifier: Apache-2.0
//! Every word a MiniCluster says about itself: conditions and events, rendered in one place.

use bivouac_runtime::reconcile::{Note, Truth, Verdict};

/// Where a cluster is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The spec cannot work; nothing is done until it changes.
    Invalid {
        faults: Vec<String>,
    },
    /// A child's name belongs to somebody else.
    NameTaken {
        kind: &'static str,
        name: String,
    },
    /// The server took a child not.
    Refused {
        text: String,
    },
    /// Held back until all ranks find room.
    Held {
        room: String,
    },
    /// Somebody else holds the Job back: a queue of Kueue, or we do not know who.
    Suspended {
        queue: Option<String>,
    },
    /// Brokers are on their way.
    Starting {
        ready: i32,
        needed: i32,
    },
    /// Enough brokers are there for work.
    Up {
        ready: i32,
        size: i32,
    },
    Finished,
    /// The Job failed, by its own words.
    Failed {
        reason: String,
        message: String,
        exit_code: Option<i32>,
    },
}

impl Phase {
    pub fn reason(&self) -> &'static str {
        match self {
            Phase::Invalid { .. } => "InvalidSpec",
            Phase::NameTaken { .. } => "NameTaken",
            Phase::Refused { .. } => "ReconcileError",
            Phase::Held { .. } => "WaitingForRoom",
            Phase::Suspended { .. } => "Suspended",
            Phase::Starting { .. } => "BrokersStarting",
            Phase::Up { .. } => "BrokersReady",
            Phase::Finished => "Completed",
            Phase::Failed { reason, .. } => match reason.as_str() {
                "DeadlineExceeded" => "DeadlineExceeded",
                "BackoffLimitExceeded" => "BackoffLimitExceeded",
                _ => "WorkFailed",
            },
        }
    }

    fn sentence(&self) -> String {
        match self {
            Phase::Invalid { faults } => faults.join("; "),
            Phase::NameTaken { kind, name } => {
                format!("{kind} {name} exists and is not ours; this MiniCluster waits until it is gone")
            }
            Phase::Refused { text } => text.clone(),
            Phase::Held { room } => format!("the Job is held back: {room}"),
            Phase::Suspended { queue: Some(queue) } => {
                format!("the Job waits in the queue {queue}; Kueue decides when it starts")
            }
            Phase::Suspended { queue: None } => {
                "the Job is suspended; whoever suspended it decides when it starts".to_owned()
            }
            Phase::Starting { ready, needed } => format!("{ready} of the {needed} brokers that are needed are ready"),
            Phase::Up { ready, size } => format!("{ready} of {size} brokers are ready"),
            Phase::Finished => "the work ended well".to_owned(),
            Phase::Failed { message, exit_code: Some(code), .. } => {
                format!("the lead broker ended with code {code}: {message}")
            }
            Phase::Failed { message, .. } => message.clone(),
        }
    }

    fn is_waiting(&self) -> bool {
        matches!(self, Phase::Held { .. } | Phase::Suspended { .. } | Phase::Starting { .. })
    }

    fn is_running(&self) -> bool {
        matches!(self, Phase::Up { .. }) || matches!(self, Phase::Starting { ready, .. } if *ready > 0)
    }

    fn is_refused(&self) -> bool {
        matches!(self, Phase::Invalid { .. } | Phase::NameTaken { .. } | Phase::Refused { .. })
    }

    pub fn is_over(&self) -> bool {
        matches!(self, Phase::Finished | Phase::Failed { .. })
    }

    /// The five conditions that clients of the original know, each true when it says so, and two for the whole.
    /// `aside` is something else worth knowing, told with `Ready`.
    pub fn conditions(&self, aside: Option<&str>) -> Vec<Verdict> {
        let up = matches!(self, Phase::Up { .. });
        let good = up || *self == Phase::Finished;
        let failed = matches!(self, Phase::Failed { .. } | Phase::Invalid { .. });
        let whole = aside.map_or_else(|| self.sentence(), |aside| format!("{}; {aside}", self.sentence()));
        [
            ("JobRequested", !self.is_refused(), self.sentence()),
            ("JobWaitingForResources", self.is_waiting(), self.sentence()),
            ("JobRunning", self.is_running(), self.sentence()),
            ("JobMiniClusterReady", up, self.sentence()),
            ("JobFinished", self.is_over(), self.sentence()),
            ("Ready", good, whole),
            ("Failed", failed, self.sentence()),
        ]
        .map(|(type_, holds, message)| {
            let status = if holds { Truth::True } else { Truth::False };
            Verdict { type_, status, reason: self.reason(), message }
        })
        .into()
    }

    pub fn event(&self) -> Note {
        let warning = self.is_refused() || matches!(self, Phase::Failed { .. });
        Note { warning, reason: self.reason(), action: "Reconcile", text: self.sentence() }
    }
}
