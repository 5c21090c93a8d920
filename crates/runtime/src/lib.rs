// SPDX-License-Identifier: Apache-2.0
//! The process around controllers. It knows no cloud and no kind.
//!
//! - [`reconcile`]: the harness, `observe → plan → apply`, one pass at a time
//! - [`mirror`]: what is watched, held in memory, together with what we just wrote
//! - [`lease`] and [`fence`]: one leader, and no write without the lease
//! - [`capabilities`]: which optional APIs the cluster serves right now
//! - [`registry`]: the list of controllers, their selection and their RBAC
//! - [`process`]: start-up, ordered shutdown; [`admin`]: health, readiness, metrics

pub mod admin;
pub mod capabilities;
pub mod client;
pub mod events;
pub mod fence;
pub mod lease;
pub mod metrics;
pub mod mirror;
pub mod process;
pub mod readiness;
pub mod reconcile;
pub mod registry;
pub mod telemetry;

pub use process::Runtime;
pub use reconcile::{Error, Kind, Plan, Reconciler};
