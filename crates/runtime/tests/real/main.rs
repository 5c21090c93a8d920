// SPDX-License-Identifier: Apache-2.0
//! Ring 4: the runtime against a real API server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod camps;
mod connection;
mod fields;
mod harness;
