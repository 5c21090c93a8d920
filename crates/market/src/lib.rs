// SPDX-License-Identifier: Apache-2.0
//! Decisions about buying machines, without any machine: what GPUs are called, what a machine must be, what is for sale,
//! which prices to believe, which offer to take, and how to fill machines with pods.
//!
//! Nothing here waits, reads a clock or rolls dice: the same question has the same answer.

pub mod area;
pub mod catalogue;
pub mod gpu;
mod guard;
pub mod labels;
pub mod market;
pub mod memory;
pub mod offer;
pub mod own;
pub mod pack;
pub mod requirement;
pub mod sample;
pub mod select;
pub mod survey;
pub mod table;
pub mod wish;

pub use area::Area;
pub use catalogue::{Catalogue, Snapshot};
pub use gpu::Gpu;
pub use market::{Listing, Market, View};
pub use memory::{Memory, Refusal};
pub use offer::{Arch, Capacity, Flaw, Offer, OfferId, Row};
pub use own::OwnPrices;
pub use pack::{Packing, pack, pack_by_price};
pub use requirement::{Allowed, Operator, Requirements};
pub use select::{Choice, Decision};
pub use survey::Survey;
pub use wish::{Least, Policy, Reading, Readings, Seller, Situation, Spot, Wish};
