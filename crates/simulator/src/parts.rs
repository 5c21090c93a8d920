// SPDX-License-Identifier: Apache-2.0
//! What a simulated cluster is made of.

use crate::{
    accounts::Accounts,
    certificates::Certificates,
    controller::Controller,
    daemon_sets::DaemonSets,
    deployments::Deployments,
    disruption_budgets::DisruptionBudgets,
    endpoint_slices::EndpointSlices,
    endpoints::Endpoints,
    jobs::{Expiry, Jobs, Orphans},
    kubelets::Kubelets,
    load_balancers::LoadBalancers,
    nodes::{Evictions, LostPods, Nodes},
    quotas::Quotas,
    replica_sets::ReplicaSets,
    scheduler::Scheduler,
    stateful_sets::StatefulSets,
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
    StatefulSets,
    DaemonSets,
    DisruptionBudgets,
    Quotas,
    Endpoints,
    EndpointSlices,
    Scheduler,
    Kubelets,
    Nodes,
    Evictions,
    LostPods,
    LoadBalancers,
    Certificates,
}

impl Part {
    /// What every cluster has, in the order in which they are asked what to do.
    pub const ALL: &'static [Self] = &[
        Self::Accounts,
        Self::Jobs,
        Self::JobOrphans,
        Self::JobExpiry,
        Self::ReplicaSets,
        Self::Deployments,
        Self::StatefulSets,
        Self::DaemonSets,
        Self::DisruptionBudgets,
        Self::Quotas,
        Self::Endpoints,
        Self::EndpointSlices,
        Self::Kubelets,
        Self::Nodes,
        Self::Evictions,
        Self::LostPods,
        Self::LoadBalancers,
        // Last: it looks at all nodes, so it is cheaper to let them settle first.
        Self::Scheduler,
    ];

    /// What a laptop has besides: parts that need real randomness, which a simulation must not have.
    pub const LAPTOP: &'static [Self] = &[Self::Certificates];

    pub(crate) fn start(self) -> Box<dyn Controller> {
        match self {
            Self::Accounts => Box::new(Accounts),
            Self::Jobs => Box::new(Jobs::default()),
            Self::JobOrphans => Box::new(Orphans),
            Self::JobExpiry => Box::new(Expiry),
            Self::ReplicaSets => Box::new(ReplicaSets),
            Self::Deployments => Box::new(Deployments),
            Self::StatefulSets => Box::new(StatefulSets),
            Self::DaemonSets => Box::new(DaemonSets::default()),
            Self::DisruptionBudgets => Box::new(DisruptionBudgets),
            Self::Quotas => Box::new(Quotas),
            Self::Endpoints => Box::new(Endpoints),
            Self::EndpointSlices => Box::new(EndpointSlices),
            Self::Scheduler => Box::new(Scheduler::default()),
            Self::Kubelets => Box::new(Kubelets),
            Self::Nodes => Box::new(Nodes),
            Self::Evictions => Box::new(Evictions::default()),
            Self::LostPods => Box::new(LostPods::default()),
            Self::LoadBalancers => Box::new(LoadBalancers),
            Self::Certificates => Box::new(Certificates::default()),
        }
    }
}
