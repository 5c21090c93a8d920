// SPDX-License-Identifier: Apache-2.0
//! The controller of `flux-framework.org` MiniClusters: Flux clusters in the pods of one indexed Job.
//!
//! The way through: [`cluster`] reads a MiniCluster once and refuses what cannot work, [`script`] writes what runs in
//! the pods, [`build`] makes the children, [`room`] counts what the nodes can hold, [`plan`] decides, [`reasons`] has the
//! words. Nothing here is wired into the operator yet.

pub mod build;
pub mod certificate;
pub mod cluster;
pub mod faults;
pub mod observe;
pub mod plan;
pub mod reasons;
pub mod room;
pub mod script;

pub use cluster::{Cluster, GangThen, Settings};
