// SPDX-License-Identifier: Apache-2.0
//! The patches that are not an apply: JSON patch, merge patch and strategic merge patch.
//!
//! Each takes an object and a decoded patch and gives the patched object. Their oddities are those of the libraries of
//! the real server, because scripts rely on them.

mod json;
mod merge;
mod order;
mod strategic;

pub use self::{json::json, merge::merge, strategic::strategic};

/// Why a patch was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// 400 `BadRequest`.
    #[error("{0}")]
    BadRequest(String),
    /// 413 `RequestEntityTooLarge`.
    #[error("Request entity too large: {0}")]
    TooLarge(String),
    /// 422 `Invalid` with empty details: the real server does not say what was wrong.
    #[error("the server rejected our request due to an error in our request")]
    Rejected,
    /// The real server answers 500 with this message and without a reason.
    #[error("{0}")]
    Failed(String),
}

#[cfg(test)]
mod tests;
