// SPDX-License-Identifier: Apache-2.0
//! Ring 1: what a Workspace means, without any cluster.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod build;
mod fixtures;
mod plan;
mod total;
