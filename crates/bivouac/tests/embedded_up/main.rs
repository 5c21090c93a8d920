// SPDX-License-Identifier: Apache-2.0
//! `bivouac up` as a new user meets it: the real binary, the real kubectl, from the first start to the last.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code outside of #[test] functions"
)]

mod background;
mod full;
mod life;
mod readme;
mod terminal;
mod trouble;
mod user;
