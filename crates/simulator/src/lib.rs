// SPDX-License-Identifier: Apache-2.0
//! What happens in a cluster, as small controllers on the embedded API server.
//!
//! Each controller is a pure function from what there is to what to write ([`Controller::plan`]). One loop runs them all
//! ([`Cluster`]), one key at a time, always on the newest view, so the same history gives the same writes: no races, no
//! caches that lag, no threads. That is what makes a simulation repeatable, and it is also all that a laptop needs.

mod accounts;
mod certificates;
mod cluster;
mod controller;
mod daemon_sets;
mod deployments;
mod disruption_budgets;
mod endpoint_slices;
mod endpoints;
mod jobs;
mod kinds;
mod kubelets;
mod labels;
mod load_balancers;
mod nodes;
mod parts;
mod placement;
mod queue;
mod quotas;
mod replica_sets;
mod request;
mod room;
mod scheduler;
mod shelf;
mod stateful_sets;
mod workload;

pub use cluster::{Cluster, Settings};
pub use controller::{Controller, Moment, Plan, Refusal};
pub use kinds::{Object, View};
pub use kubelets::logs;
pub use parts::Part;
pub use request::{Propagation, Target, Told, Write};
pub use shelf::{Key, Shelf};
