// SPDX-License-Identifier: Apache-2.0
//! Ring 1: every cloud against its fake.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod gcp;
mod kit;
mod lambda;
mod tables;
mod told;
mod vultr;
mod words;
