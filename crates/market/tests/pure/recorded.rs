// SPDX-License-Identifier: Apache-2.0
//! Recorded prices of 24 clouds, where they are beside the project.

use std::io::Read;
use std::path::{Path, PathBuf};

use bivouac_market::{Allowed, Catalogue, Flaw, Memory, Requirements, Wish, labels, table};

use crate::by_reading::by_reading;
use crate::prices::{readings, situation};

fn recorded() -> Option<String> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("BIVOUAC_SHARED").map_or_else(default, PathBuf::from);
    let mut text = String::new();
    let Ok(file) = std::fs::File::open(shared.join("data/offers-2026-08-22.csv.gz")) else {
        eprintln!("NOT RUN: there are no recorded prices beside the project");
        return None;
    };
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    Some(text)
}

#[test]
fn known_dirt_is_set_aside_and_little_else() {
    let Some(text) = recorded() else { return };
    let rows = table::read(&text).unwrap();
    assert_eq!(rows.len(), 112_016);
    let catalogue = Catalogue::new(&rows);
    let count = |flaw| catalogue.iter().filter(|offer| offer.flaw == Some(flaw)).count();
    let counts: Vec<(Flaw, usize)> = Flaw::ALL.map(|flaw| (flaw, count(flaw))).to_vec();
    println!("{} offers: {counts:?}", catalogue.len());
    let believed = |offer: &bivouac_market::Offer<'_>| offer.flaw.is_none() && offer.gpu.is_some();
    let cheap: Vec<String> = catalogue
        .iter()
        .filter(|offer| believed(offer) && offer.price.micros() * 1000 < 20_000 * i64::from(offer.gpus))
        .map(|offer| {
            format!("{} {} {} {} ${}", offer.cloud, offer.machine, offer.gpu.unwrap(), offer.capacity, offer.price)
        })
        .collect();
    assert_eq!(cheap, [""; 0], "no GPU costs less than two cents");
    assert!(catalogue.iter().filter(|offer| offer.price.is_zero()).all(|offer| offer.flaw.is_some()));
    let doubtful = catalogue.iter().filter(|offer| offer.flaw.is_some_and(Flaw::is_doubt)).count();
    assert!(doubtful * 100 < catalogue.len(), "{doubtful} of {}", catalogue.len());
}

#[test]
fn the_index_finds_what_reading_everything_finds() {
    let Some(text) = recorded() else { return };
    let catalogue = Catalogue::new(&table::read(&text).unwrap());
    let (memory, readings) = (Memory::default(), readings(&catalogue));
    let now = situation(&memory, &readings, 1);
    for gpu in ["H100", "A100-80GB", "L4", "RTX4090", "MI300X", "V100", "tpu-v5p-8"] {
        for count in ["1", "4", "8"] {
            let mut requirements = Requirements::default();
            requirements.add(labels::GPU_TYPE, Allowed::only([gpu]));
            requirements.add(labels::GPU_COUNT, Allowed::only([count]));
            let wish = Wish { requirements, ..Wish::default() };
            let found = catalogue
                .choose(&wish, now, 3)
                .map(|decision| decision.choices.iter().map(|choice| choice.offer).collect::<Vec<_>>());
            assert_eq!(found.unwrap_or_default(), by_reading(&catalogue, &wish, now, 3), "{count} {gpu}");
        }
    }
}
