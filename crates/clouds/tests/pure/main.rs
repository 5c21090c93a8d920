// SPDX-License-Identifier: Apache-2.0
//! Ring 1: every cloud against its fake.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod budget;
mod digitalocean;
mod gcp;
mod http;
mod kit;
mod lambda;
mod lines;
mod paperspace;
mod planted;
mod runpod;
mod secrets;
mod shadeform;
mod tables;
mod told;
mod vast;
mod verda;
mod vultr;
mod words;
