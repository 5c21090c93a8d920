// SPDX-License-Identifier: Apache-2.0
//! The program itself, as `bivouac simulate` starts it.

use std::process::Command;

use serde_json::Value;

/// Its last line, and the code it ended with.
fn play(args: &[&str]) -> (Value, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_bivouac-sim")).args(args).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    (lines.lines().last().map_or(Value::Null, |line| serde_json::from_str(line).unwrap()), output.status.code())
}

#[test]
fn the_seed_decides_the_transcript() {
    let hash = |seed| {
        let (last, code) = play(&["tenancy/one-workspace", "--seed", seed]);
        assert_eq!(code, Some(0), "{last}");
        last["done"]["transcript_hash"].as_str().unwrap().to_owned()
    };
    assert_eq!(hash("5"), hash("5"));
    assert_ne!(hash("5"), hash("6"));
}

#[test]
fn a_scenario_that_does_not_exist_is_an_error_of_the_caller() {
    assert_eq!(play(&["tenancy/nowhere"]), (Value::Null, Some(2)));
}
