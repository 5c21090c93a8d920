// SPDX-License-Identifier: Apache-2.0
//! From what the derive macros make to what an API server should get.

mod finish;
pub mod schema;

pub use finish::finish;
