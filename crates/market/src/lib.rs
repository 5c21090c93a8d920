// SPDX-License-Identifier: Apache-2.0
//! Decisions about buying machines, without any machine: what GPUs are called, and what a machine must be.
//!
//! Nothing here waits, reads a clock or rolls dice: the same question has the same answer.

pub mod gpu;
pub mod requirement;

pub use gpu::Gpu;
pub use requirement::{Allowed, Operator, Requirements};
