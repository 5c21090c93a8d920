// SPDX-License-Identifier: Apache-2.0
//! One file per verb.

pub mod create;
pub mod delete;
pub mod patch;
pub mod pods;
pub mod read;
pub mod review;
pub mod scale;
pub mod subresource;
pub mod update;
pub mod watch;
