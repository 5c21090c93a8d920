// SPDX-License-Identifier: Apache-2.0
//! Invented price lists with the shape and the dirt of real ones, for tests and benches on machines without recorded
//! data.

use bivouac_core::ids::{IdStream, Ids};

use crate::table::HEADER;

/// GPU, usual price of one per hour in thousandths of a dollar.
const GPUS: [(&str, u64); 16] = [
    ("", 0),
    ("T4", 350),
    ("L4", 600),
    ("A10G", 1000),
    ("V100", 2300),
    ("L40S", 1100),
    ("A100", 2000),
    ("A100-80GB", 2200),
    ("H100", 2900),
    ("H100-SXM", 3100),
    ("H200", 3800),
    ("B200", 5500),
    ("RTX4090", 500),
    ("A6000", 800),
    ("MI300X", 3000),
    ("tpu-v5e-8", 9600),
];
const COUNTS: [u64; 5] = [1, 2, 4, 8, 1];
const CLOUDS: u64 = 24;

/// A price list of so many rows, the same for the same seed.
pub fn table(rows: usize, seed: u64) -> String {
    let mut dice = Dice(Ids::new(seed).purpose("prices"));
    let mut text = format!("{HEADER}\n");
    let mut written = 0;
    while written < rows {
        let machine = Machine::drawn(&mut dice, written);
        // A large cloud sells a machine in many places, a small one in a few.
        for place in 0..machine.places.min((rows - written) as u64) {
            text.push_str(&machine.line(&mut dice, place));
            written += 1;
        }
    }
    text
}

struct Dice(IdStream);

struct Machine {
    cloud: u64,
    name: String,
    gpu: &'static str,
    gpus: u64,
    vcpus: u64,
    price: u64,
    places: u64,
}

// === impl Dice ===

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit.max(1)
    }
}

// === impl Machine ===

impl Machine {
    fn drawn(dice: &mut Dice, number: usize) -> Self {
        // Two throws make low numbers, which are the large clouds, the likely ones.
        let cloud = dice.below(CLOUDS).min(dice.below(CLOUDS)).min(dice.below(CLOUDS));
        let (gpu, usual) = pick(&GPUS, dice.below(40));
        let gpus = if gpu.is_empty() { 0 } else { pick(&COUNTS, dice.below(COUNTS.len() as u64)) };
        let vcpus = (1 + dice.below(24)) * 4 * gpus.max(1);
        let price = usual * gpus * (60 + dice.below(140)) / 100 + vcpus * (20 + dice.below(40));
        let places = if cloud < 3 { 10 + dice.below(60) } else { 1 + dice.below(8) };
        Self { cloud, name: format!("m{number}-{vcpus}"), gpu, gpus, vcpus, price, places }
    }

    fn line(&self, dice: &mut Dice, place: u64) -> String {
        let Self { cloud, name, gpu, gpus, vcpus, .. } = self;
        let price = self.price * (90 + dice.below(30)) / 100;
        let (price, name) = match dice.below(2000) {
            0 => (0, name.as_str()),
            1 => (10, name.as_str()),
            2 => (price * 8760, name.as_str()),
            3 => (price, ""),
            _ => (price, name.as_str()),
        };
        let spot = if dice.below(20) == 0 { String::new() } else { dollars(price * (20 + dice.below(60)) / 100) };
        let (region, gpus) = (place / 3, if *gpus == 0 { String::new() } else { gpus.to_string() });
        let price = dollars(price);
        format!("c{cloud},r{region},r{region}-{place},{name},{gpu},{gpus},{vcpus},{},{price},{spot}\n", vcpus * 4)
    }
}

fn pick<T: Copy + Default>(all: &[T], number: u64) -> T {
    usize::try_from(number).ok().and_then(|number| all.get(number)).or(all.first()).copied().unwrap_or_default()
}

fn dollars(thousandths: u64) -> String {
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}
