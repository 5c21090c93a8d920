// SPDX-License-Identifier: Apache-2.0
//! Ring 1: the kinds, group by group.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod addons;
mod akash;
mod crds;
mod flux;
mod infra;
mod kinds;
mod module;
mod samples;
mod tenant;
mod tgp;
mod tgp_claim;
mod workspaces;
