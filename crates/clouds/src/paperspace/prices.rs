// SPDX-License-Identifier: Apache-2.0
//! What machines cost. The cloud tells nobody before there is one, so we bring a table, and learn from every machine
//! that we see.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use bivouac_core::Money;
use bivouac_market::{Listing, Row, table};

use super::NAME;

/// The day on which the table was made.
pub const TABLE_OF: &str = "2026-11-15";
/// The same everywhere, as far as anybody has seen.
pub const REGIONS: [&str; 3] = ["ny2", "ca1", "ams1"];

const TEXT: &str = include_str!("prices.csv");

static ROWS: LazyLock<Vec<Row<'static>>> = LazyLock::new(|| {
    table::read(TEXT).unwrap_or_else(|error| {
        debug_assert!(false, "the prices of {NAME} cannot be read: {error}");
        Vec::new()
    })
});

/// What machines of a type really cost, by type and region.
#[derive(Debug, Default)]
pub struct Observed(Mutex<BTreeMap<(String, String), Money>>);

// === impl Observed ===

impl Observed {
    pub fn learn(&self, machine: &str, region: &str, price: Option<Money>) {
        let Some(price) = price.filter(|price| *price > Money::ZERO) else { return };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((machine.to_owned(), region.to_owned()), price);
    }

    fn price(&self, machine: &str, region: &str) -> Option<Money> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(machine.to_owned(), region.to_owned())).copied()
    }

    /// Everything that there is, in stock or not.
    pub fn listings(&self) -> Vec<Listing> {
        let pairs = ROWS.iter().flat_map(|row| REGIONS.map(|region| (row, region)));
        let listing = |(row, region): (&Row<'_>, &str)| Listing {
            region: region.to_owned(),
            machine: row.machine.to_owned(),
            gpu: row.gpu.to_owned(),
            gpus: row.gpus,
            vcpus: row.vcpus,
            memory_mib: row.memory_mib,
            on_demand: self.price(row.machine, region).or(row.on_demand),
            ..Listing::default()
        };
        pairs.map(listing).collect()
    }
}

/// `East Coast (NY2)` and `ny2` are the same.
pub fn region(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    REGIONS.iter().find(|short| lower.contains(**short)).map_or(lower.clone(), |short| (*short).to_owned())
}
