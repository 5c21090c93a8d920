// SPDX-License-Identifier: Apache-2.0
//! What a plan for one MiniCluster needs to know. The reading itself comes with the wiring.

use std::{collections::BTreeSet, sync::Arc};

use bivouac_runtime::reconcile::Category;
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Node, Pod},
};

use crate::certificate::Certificate;

/// The part of the Kubernetes cluster that concerns one MiniCluster.
#[derive(Debug)]
pub struct World {
    /// The stored certificate, or else one from fresh random bytes: a plan has no randomness.
    pub certificate: Certificate,
    pub is_certificate_stored: bool,
    pub job: Option<Job>,
    pub services_pod: Option<Pod>,
    /// Pods of the Job.
    pub ranks: Vec<Rank>,
    /// Children's names that belong to somebody else, as (kind, name).
    pub strangers: BTreeSet<(&'static str, String)>,
    /// A Service, NetworkPolicy or disruption budget of the namespace selects on `job-index`.
    pub is_index_selected: bool,
    /// All nodes and pods, read only where all ranks must start at once.
    pub nodes: Vec<Arc<Node>>,
    pub pods: Vec<Arc<Pod>>,
    /// The writes that the server just refused.
    pub refusals: Vec<Refusal>,
}

/// One pod of the Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    pub pod: String,
    pub uid: String,
    pub index: String,
    /// Its label `job-index`.
    pub label: Option<String>,
    /// What the runner ended with, if it did.
    pub exit_code: Option<i32>,
}

/// A child that could not be written, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub category: Category,
    pub text: String,
}

impl World {
    /// Nothing exists yet.
    pub fn empty(certificate: Certificate) -> Self {
        Self {
            certificate,
            is_certificate_stored: false,
            job: None,
            services_pod: None,
            ranks: Vec::new(),
            strangers: BTreeSet::new(),
            is_index_selected: false,
            nodes: Vec::new(),
            pods: Vec::new(),
            refusals: Vec::new(),
        }
    }
}
