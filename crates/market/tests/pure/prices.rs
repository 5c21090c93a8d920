// SPDX-License-Identifier: Apache-2.0
//! Price lists and situations for tests.

use bivouac_core::Money;
use bivouac_market::{Catalogue, Memory, Reading, Readings, Row, Situation};
use jiff::{SignedDuration, Timestamp};

pub fn dollars(text: &str) -> Money {
    text.parse().unwrap()
}

/// A machine with one GPU on demand.
pub fn row<'a>(cloud: &'a str, region: &'a str, machine: &'a str, gpu: &'a str, price: &str) -> Row<'a> {
    Row {
        cloud,
        region,
        machine,
        gpu,
        gpus: if gpu.is_empty() { 0 } else { 1000 },
        vcpus: 8000,
        memory_mib: 32_768,
        on_demand: Some(dollars(price)),
        ..Row::default()
    }
}

pub fn at(minute: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24) + SignedDuration::from_mins(minute)
}

/// All clouds of the catalogue were read at minute 0 and are good for an hour.
pub fn readings(catalogue: &Catalogue) -> Readings {
    let mut readings = Readings::default();
    for offer in catalogue.iter() {
        readings.set(offer.cloud, Reading { read_at: at(0), good_for: SignedDuration::from_hours(1) });
    }
    readings
}

pub fn situation<'a>(memory: &'a Memory, readings: &'a Readings, minute: i64) -> Situation<'a> {
    Situation { now: at(minute), memory, readings }
}
