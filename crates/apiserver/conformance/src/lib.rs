// SPDX-License-Identifier: Apache-2.0
//! Conformance by comparison: request scripts run against the embedded API server and against the real one, and every
//! answer has to be the same after what cannot be the same (uids, times, revisions) has got names.
//!
//! The scripts are data: see `cases/README.md`. What may differ is in `declared.yaml`, with the reason.

pub mod case;
mod cast;
pub mod compare;
mod normal;
mod path;
pub mod play;
pub mod random;

pub use case::{Case, load};
pub use compare::{Declared, Report, compare};
pub use play::{Record, Transcript, play_all};
