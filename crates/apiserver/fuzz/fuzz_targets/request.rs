// SPDX-License-Identifier: Apache-2.0
#![no_main]

#[path = "../request_property.rs"]
mod request_property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    request_property::check(data);
});
