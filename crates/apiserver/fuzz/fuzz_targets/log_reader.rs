// SPDX-License-Identifier: Apache-2.0
#![no_main]

#[path = "../log_property.rs"]
mod log_property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| log_property::check(data));
