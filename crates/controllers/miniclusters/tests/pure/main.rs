// SPDX-License-Identifier: Apache-2.0
//! Ring 1: what a MiniCluster means, without any cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod brokers;
mod build;
mod documents;
mod faults;
mod fixtures;
/// A program of its own, which is read here too: so are its lints.
#[allow(dead_code, reason = "it is built by rustc")]
#[path = "../brokers/flux.rs"]
mod flux;
mod gang;
mod others;
mod plan;
mod room;
mod run;
mod samples;
mod script;
mod sidecars;
#[path = "../brokers/stub.rs"]
mod stub;
mod telling;
mod total;
mod words;
