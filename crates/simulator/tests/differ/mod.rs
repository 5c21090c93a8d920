// SPDX-License-Identifier: Apache-2.0
//! The same manifests in a real control plane and in the simulated one.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a case that cannot be played has failed"
)]

pub mod case;
pub mod normal;
pub mod play;
pub mod world;
