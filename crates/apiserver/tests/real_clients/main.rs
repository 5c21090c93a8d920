// SPDX-License-Identifier: Apache-2.0
//! Ring 4: programs that were made for the real server, unmodified, on the embedded one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod chart;
mod controllers;
mod kubectl;
mod plane;
