// SPDX-License-Identifier: Apache-2.0
//! Ring 4: what only a real API server can show of MiniClusters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod children;
mod kueue;
mod life;
mod names;
mod node;
mod pods;
#[path = "../brokers/stub.rs"]
mod stub;
