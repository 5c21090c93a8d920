// SPDX-License-Identifier: Apache-2.0
//! The harness every controller runs in: `observe → plan → apply`.
//!
//! A controller says what it reads ([`Reconciler::observe`]) and what it wants ([`Reconciler::plan`]). The harness
//! writes the difference, looks again, and tells the status only when the children stand or a write was refused.
//! Start reading at [`pass`].

mod apply;
mod backoff;
mod children;
mod containment;
mod crowd;
mod error;
mod gather;
mod inherit;
mod memory;
mod pass;
mod plan;
mod run;
mod status;

use std::{any::TypeId, fmt::Debug};

use jiff::Timestamp;
use kube::{Resource, core::ClusterResourceScope};
use serde::{Serialize, de::DeserializeOwned};

pub use apply::{APPLIED_ANNOTATION, by_force, dress};
pub use backoff::jittered;
pub use children::{Children, Failure, Live, pack_whole};
pub use containment::{contains, fingerprint};
pub use error::{Category, Error, plain};
pub use plan::{Child, NoEffect, Note, Only, OwnLabels, Plan, Truth, Verdict};
pub use run::{Objects, Setup, run};

/// A typed Kubernetes kind.
pub trait Kind:
    Resource<DynamicType = (), Scope: 'static> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Whether its objects live outside namespaces.
    fn is_cluster_scoped() -> bool {
        TypeId::of::<Self::Scope>() == TypeId::of::<ClusterResourceScope>()
    }
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope: 'static>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// One controller: it watches one kind and makes the world match each object of it.
pub trait Reconciler: Send + Sync + 'static {
    /// The controller's name; its field manager is `bivouac-NAME`.
    const NAME: &'static str;
    /// Set only when something outside the cluster or outside ownership must be undone.
    const FINALIZER: Option<&'static str> = None;
    /// Field managers of programs that wrote the same children before us. What they set becomes ours at the first apply.
    const PREDECESSORS: &'static [&'static str] = &[];

    type Kind: Kind;
    /// Everything the plan needs to know, read before it decides.
    type World: Send + Sync;
    type Status: Serialize + Send + Sync;
    /// The closed list of things this controller may do outside Kubernetes.
    type Effect: Debug + Send + Sync;

    /// Reads, without judgement.
    fn observe(&self, object: &Self::Kind, live: &Live<'_>) -> impl Future<Output = Result<Self::World, Error>> + Send;

    /// Decides everything. Pure and total: no client, no clock, no randomness, no environment.
    fn plan(&self, object: &Self::Kind, world: &Self::World, now: Timestamp) -> Plan<Self::Status, Self::Effect>;

    /// What must be undone before the object may go. Asked until the plan is done; only with a finalizer.
    fn release(&self, _object: &Self::Kind, _world: &Self::World, _now: Timestamp) -> Plan<Self::Status, Self::Effect> {
        Plan::default()
    }

    /// Does one thing outside Kubernetes. What came of it is learned by the next observation.
    fn perform(&self, object: &Self::Kind, effect: Self::Effect) -> impl Future<Output = Result<(), Error>> + Send;
}
