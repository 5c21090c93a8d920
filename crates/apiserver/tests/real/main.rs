// SPDX-License-Identifier: Apache-2.0
//! Ring 4: programs that were made for the real server on the embedded one, and the real server beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod chart;
mod controllers;
mod defaults;
mod kubectl;
mod plane;
