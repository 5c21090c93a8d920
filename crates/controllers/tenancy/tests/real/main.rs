// SPDX-License-Identifier: Apache-2.0
//! Ring 4: Workspaces on a real API server, with the real garbage collector and namespace controller.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod restart;
mod scale;
#[path = "../workspaces/mod.rs"]
mod workspaces;
mod world;

workspaces::every_test!();
