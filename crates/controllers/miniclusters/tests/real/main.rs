// SPDX-License-Identifier: Apache-2.0
//! Ring 4: what only a real API server can show of MiniClusters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod children;
mod life;
