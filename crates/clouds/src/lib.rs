// SPDX-License-Identifier: Apache-2.0
//! Clients of the clouds that sell machines, and their fakes.
//!
//! All clouds are asked the same six things ([`Cloud`]) and fail in the same ten ways ([`Outcome`]). One folder per cloud
//! has the client, its tables and its fake; [`kit`] is what every one of them must pass.

pub mod budget;
pub mod cloud;
pub mod credentials;
pub mod digitalocean;
pub mod fake;
pub mod fault;
pub mod gcp;
pub mod kit;
pub mod lambda;
pub mod line;
pub mod metrics;
pub mod pages;
pub mod paperspace;
pub mod read;
pub mod registry;
pub mod runpod;
mod script;
mod secret;
pub mod shadeform;
pub mod tables;
pub mod vast;
pub mod verda;
pub mod vultr;
pub mod wire;

pub use cloud::{Account, Boot, Boots, Capabilities, Cloud, Machine, Order, Owner, Pending, Prices, State};
pub use credentials::{Credentials, Lack};
pub use fault::{Fault, Operation, Outcome};
pub use registry::{ALL, Entry, find};
pub use secret::{Redactor, Secret};
pub use wire::{Broken, Line, Wire};
