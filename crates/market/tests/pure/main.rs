// SPDX-License-Identifier: Apache-2.0
//! Ring 1: what is for sale, which prices are believed, and what is bought.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod by_reading;
mod catalogue;
mod guard;
mod market;
mod memory;
mod prices;
mod recorded;
mod select;
