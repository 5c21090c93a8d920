// SPDX-License-Identifier: Apache-2.0
//! A Kubernetes API server in a library.
//!
//! It is for development, tests and simulation: the same requests give the same answers as the real server's, which the
//! conformance suite shows, but nobody audits it for production. Production is any real Kubernetes.

#[macro_use]
pub mod fault;

mod access;
mod addresses;
mod admission;
mod answer;
mod bootstrap;
pub mod builtin;
mod call;
mod clock;
mod collect;
mod decode;
mod definitions;
mod discovery;
mod field;
mod hooks;
mod json;
mod kinds;
pub mod merge;
mod metadata;
mod metrics;
mod names;
mod object;
mod openapi;
pub mod patch;
mod registry;
mod request;
pub mod schema;
mod serve;
mod server;
mod speaker;
pub mod status;
pub mod store;
mod verbs;
mod write;

pub use access::User;
pub use addresses::ServiceRange;
pub use answer::Body;
pub use clock::TokioClock;
pub use serve::serve;
pub use server::{ApiServer, BODY_LIMIT, ForkSettings, Settings};
pub use speaker::Speaker;
pub use verbs::pods::log::Logs;
