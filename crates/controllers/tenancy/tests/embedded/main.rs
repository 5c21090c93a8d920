// SPDX-License-Identifier: Apache-2.0
//! Ring 2: Workspaces on the embedded API server, on a paused clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "../workspaces/mod.rs"]
mod workspaces;
mod world;

workspaces::every_test!();
