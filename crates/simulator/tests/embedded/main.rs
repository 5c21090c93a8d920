// SPDX-License-Identifier: Apache-2.0
//! Ring 2: the simulated cluster on the embedded server, in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod accounts;
mod brokers;
mod camp;
mod certificates;
mod hands;
mod jobs;
mod kubelets;
mod mounts;
mod nodes;
mod rest;
mod scheduling;
#[path = "../stage/mod.rs"]
mod stage;
mod together;
mod workloads;
