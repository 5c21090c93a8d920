// SPDX-License-Identifier: Apache-2.0
//! The committed table of built-in kinds is the one that the real API server would give.

use std::process::Command;

#[test]
fn the_table_of_built_in_kinds_is_fresh() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(["gen", "--check", "--builtin"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("asking about"), "no server was asked: {text}");
}
