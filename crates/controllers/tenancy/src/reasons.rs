// SPDX-License-Identifier: Apache-2.0
//! Every word a Workspace says about itself: reasons, conditions and events, rendered in one place.

use bivouac_runtime::reconcile::{Note, Truth, Verdict};

use crate::observe::Refusal;

/// The parts of a Workspace that have a condition of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Namespace,
    Members,
    Quota,
    Limits,
    Isolation,
    Reconciler,
    Endpoints,
}

impl Part {
    pub const ALL: [Part; 7] =
        [Part::Namespace, Part::Members, Part::Quota, Part::Limits, Part::Isolation, Part::Reconciler, Part::Endpoints];

    pub fn condition(self) -> &'static str {
        match self {
            Part::Namespace => "NamespaceReady",
            Part::Members => "MembersReady",
            Part::Quota => "QuotaReady",
            Part::Limits => "LimitsReady",
            Part::Isolation => "IsolationReady",
            Part::Reconciler => "ReconcilerReady",
            Part::Endpoints => "EndpointsReady",
        }
    }
}

/// How one part stands.
#[derive(Debug)]
pub enum Standing<'a> {
    /// It is there, as asked.
    Stands(String),
    /// The Workspace does not ask for it.
    NotRequested,
    /// It needs an API that the cluster does not serve.
    ApiMissing(&'static str),
    /// It waits for something before it.
    Waiting(&'static str),
    /// The server refused to take it.
    Refused(&'a Refusal),
}

impl Standing<'_> {
    pub fn verdict(&self, part: Part) -> Verdict {
        let (status, reason, message) = match self {
            Standing::Stands(what) => (Truth::True, "Applied", what.clone()),
            Standing::NotRequested => (Truth::True, "NotRequested", "the Workspace does not ask for it".to_owned()),
            Standing::ApiMissing(api) => {
                (Truth::True, "ApiMissing", format!("not needed: the cluster does not serve {api}"))
            }
            Standing::Waiting(what) => (Truth::False, "Waiting", format!("waits for {what}")),
            Standing::Refused(refusal) => (Truth::False, refusal.category.as_str(), refusal.text.clone()),
        };
        Verdict { type_: part.condition(), status, reason, message }
    }
}

/// The one sentence about the whole Workspace.
#[derive(Debug, PartialEq, Eq)]
pub enum Reason {
    Reconciled {
        namespace: String,
    },
    /// Somebody else's namespace has this name.
    NamespaceConflict {
        namespace: String,
        owner: Option<String>,
    },
    /// An older Workspace asks for the same namespace.
    NamespaceClaimed {
        namespace: String,
        rival: String,
    },
    NamespaceTerminating {
        namespace: String,
    },
    ReconcileError {
        what: String,
    },
}

impl Reason {
    fn name(&self) -> &'static str {
        match self {
            Reason::Reconciled { .. } => "Reconciled",
            Reason::NamespaceConflict { .. } => "NamespaceConflict",
            Reason::NamespaceClaimed { .. } => "NamespaceClaimed",
            Reason::NamespaceTerminating { .. } => "NamespaceTerminating",
            Reason::ReconcileError { .. } => "ReconcileError",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Reason::Reconciled { namespace } => format!("namespace {namespace} is as this Workspace asks"),
            Reason::NamespaceConflict { namespace, owner: Some(owner) } => format!(
                "namespace {namespace} belongs to Workspace {owner}; this one waits until it is gone, or delete this \
                 Workspace and make it again with another spec.namespace"
            ),
            Reason::NamespaceConflict { namespace, owner: None } => format!(
                "namespace {namespace} exists and is not ours; this Workspace waits until it is gone, or delete this \
                 Workspace and make it again with another spec.namespace"
            ),
            Reason::NamespaceClaimed { namespace, rival } => {
                format!("namespace {namespace} is claimed by the older Workspace {rival}; this one waits")
            }
            Reason::NamespaceTerminating { namespace } => {
                format!("namespace {namespace} is being deleted; it is made again when it is gone")
            }
            Reason::ReconcileError { what } => what.clone(),
        }
    }

    pub fn ready(&self) -> Verdict {
        let status = if self.is_good() { Truth::True } else { Truth::False };
        Verdict { type_: "Ready", status, reason: self.name(), message: self.sentence() }
    }

    pub fn event(&self) -> Note {
        Note { warning: !self.is_good(), reason: self.name(), action: "Reconcile", text: self.sentence() }
    }

    fn is_good(&self) -> bool {
        matches!(self, Reason::Reconciled { .. })
    }
}
