// SPDX-License-Identifier: Apache-2.0
//! Ring 4: Workspaces on a real API server, with the real garbage collector and namespace controller.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod access;
mod drift;
mod input;
mod namespaces;
#[path = "../operator/mod.rs"]
mod operator;
mod provisioning;
mod stage;
mod trouble;
