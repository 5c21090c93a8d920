// SPDX-License-Identifier: Apache-2.0
//! Scenarios are part of the binary: a changed one makes it new.

fn main() {
    println!("cargo:rerun-if-changed=scenarios");
}
