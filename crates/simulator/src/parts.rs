// SPDX-License-Identifier: Apache-2.0
//! What a simulated cluster is made of.

use crate::{
    accounts::Accounts,
    controller::Controller,
    deployments::Deployments,
    jobs::{Expiry, Jobs, Orphans},
    replica_sets::ReplicaSets,
};

/// One controller of the cluster. Each lives in the file or folder of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Accounts,
    Jobs,
    JobOrphans,
    JobExpiry,
    ReplicaSets,
    Deployments,
}

impl Part {
    /// In the order in which they are asked what to do.
    pub const ALL: &'static [Self] =
        &[Self::Accounts, Self::Jobs, Self::JobOrphans, Self::JobExpiry, Self::ReplicaSets, Self::Deployments];

    pub(crate) fn start(self) -> Box<dyn Controller> {
        match self {
            Self::Accounts => Box::new(Accounts),
            Self::Jobs => Box::new(Jobs::default()),
            Self::JobOrphans => Box::new(Orphans),
            Self::JobExpiry => Box::new(Expiry),
            Self::ReplicaSets => Box::new(ReplicaSets),
            Self::Deployments => Box::new(Deployments),
        }
    }
}
