// SPDX-License-Identifier: Apache-2.0
//! The same manifests in a real control plane and in the simulated one.

pub mod case;
pub mod normal;
pub mod play;
pub mod world;
