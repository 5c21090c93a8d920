// SPDX-License-Identifier: Apache-2.0
//! Ring 4: the clusters that tests work on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod own;
mod shared;
