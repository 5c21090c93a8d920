// SPDX-License-Identifier: Apache-2.0
//! A Kubernetes API server in a library.
//!
//! It is for development, tests and simulation: the same requests give the same answers as the real server's, which the
//! conformance suite shows, but nobody audits it for production. Production is any real Kubernetes.

pub mod schema;
pub mod status;
