// SPDX-License-Identifier: Apache-2.0
//! Ring 4: the program and its charts on a real cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod chart;
mod examples;
mod flux_policies;
mod install;
mod operator;
mod policies;
mod samples;
mod sdk;
mod startup;
mod swap;
