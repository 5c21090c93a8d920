// SPDX-License-Identifier: Apache-2.0
//! Ring 2: MiniClusters in a simulated cluster, on a paused clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod company;
mod gang;
mod life;
mod resize;
mod stage;
