// SPDX-License-Identifier: Apache-2.0
//! Ring 2: `bivouac up` as a new user meets it: the real binary, the real kubectl, from the first start to the last.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod background;
mod full;
mod life;
mod market;
mod minicluster;
mod readme;
mod terminal;
mod trouble;
mod user;
