// SPDX-License-Identifier: Apache-2.0
//! The pure vocabulary of Bivouac: money, quantities, names, time and ids.
//!
//! Nothing here reads a clock, a file, the network or a random source on its own, and nothing uses floats:
//! the same input always gives the same output, so that plans can be compared, hashed and replayed.

pub mod clock;
pub mod ids;
pub mod money;
pub mod names;
pub mod quantity;

pub use clock::{Clock, ManualClock, SystemClock};
pub use ids::{IdStream, Ids};
pub use money::{Money, MoneyError};
pub use quantity::{Format, Quantity, QuantityError};
