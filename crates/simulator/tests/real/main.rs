// SPDX-License-Identifier: Apache-2.0
//! Ring 4: the simulated cluster beside the real one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod controllers;
mod differ;
mod scheduler;
#[path = "../stage/mod.rs"]
mod stage;
