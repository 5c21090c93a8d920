// SPDX-License-Identifier: Apache-2.0
//! Ring 1: what a MiniCluster means, without any cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod build;
mod documents;
mod faults;
mod fixtures;
mod plan;
mod room;
mod run;
mod samples;
mod script;
mod telling;
mod total;
mod words;
