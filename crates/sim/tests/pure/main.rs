// SPDX-License-Identifier: Apache-2.0
//! Ring 1: the simulation as a program.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod program;
