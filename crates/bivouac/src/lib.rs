// SPDX-License-Identifier: Apache-2.0
//! What the binary is made of, for `cargo xtask`: it writes the generated files from the same code.

pub mod cli;
pub mod market;
pub mod minicluster;
pub mod operator;
pub mod print;
pub mod simulate;
mod table;
pub mod up;
