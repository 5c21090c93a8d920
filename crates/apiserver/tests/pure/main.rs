// SPDX-License-Identifier: Apache-2.0
//! Ring 1: the store, and the server without a client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod fork;
mod kinds;
mod quota;
mod shipped_policies;
mod store_full;
mod store_kill;
mod store_log;
mod webhooks;
mod who_may;
