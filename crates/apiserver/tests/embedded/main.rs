// SPDX-License-Identifier: Apache-2.0
//! Ring 2: the whole server, in this process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod requests;
mod trouble;
