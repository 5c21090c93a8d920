// SPDX-License-Identifier: Apache-2.0
//! Made-up items and machine kinds that look like a market: the same seed gives the same.

use bivouac_core::Money;
use bivouac_market::pack::{Amounts, Item, Kind, KindSet};

const GIB: u64 = 1024;

/// A small generator of even numbers (splitmix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

/// What tells kinds apart, so that items can be choosy.
#[derive(Clone, Copy)]
struct Traits {
    seller: u64,
    region: u64,
    model: u64,
    spot: bool,
    arm: bool,
}

/// Pods of all sizes over machines of several sellers, with and without GPUs; some pods are choosy.
pub fn diverse(items: usize, kinds: usize, seed: u64) -> (Vec<Item>, Vec<Kind>) {
    let mut dice = Dice::new(seed);
    let (kinds, traits): (Vec<Kind>, Vec<Traits>) = (0..kinds).map(|_| kind(&mut dice)).unzip();
    let items = (0..items).map(|_| item(&mut dice, &traits)).collect();
    (items, kinds)
}

/// About what such a machine costs, give or take a third, and spot machines are a lot cheaper.
fn kind(dice: &mut Dice) -> (Kind, Traits) {
    let with_gpus = dice.percent(40);
    let traits = Traits {
        seller: dice.below(6),
        region: dice.below(4),
        model: if with_gpus { 1 + dice.below(5) } else { 0 },
        spot: dice.percent(30),
        arm: !with_gpus && dice.percent(20),
    };
    let gpus = if with_gpus { dice.one_of(&[1, 1, 2, 4, 8]) } else { 0 };
    let cores =
        if with_gpus { gpus * dice.one_of(&[8, 12, 16, 24]) } else { dice.one_of(&[2, 4, 8, 16, 32, 48, 64, 96]) };
    let memory = cores * dice.one_of(&[2, 4, 4, 8]) * GIB;
    let disk = dice.one_of(&[40, 80, 100, 200, 500, 1000, 2000]) * GIB;
    let model_price = [0, 400_000, 800_000, 1_300_000, 2_000_000, 3_000_000][traits.model as usize];
    let price = gpus * model_price + cores * 22_000 + memory / GIB * 3_000 + disk / GIB * 80;
    let price = price * (70 + dice.below(61)) / 100 * if traits.spot { 45 } else { 100 } / 100;
    // What the system and the daemons take.
    let holds = Amounts {
        cpu: cores * 1000 - 150 - cores * 5,
        memory: memory - memory / 16 - 300,
        gpus,
        disk: disk - disk / 10,
        pods: dice.one_of(&[29, 58, 110, 110, 110, 250]),
    };
    (Kind { holds, price: Money::from_micros(price as i64) }, traits)
}

fn item(dice: &mut Dice, traits: &[Traits]) -> Item {
    let gpus = if dice.percent(20) { dice.one_of(&[1, 1, 1, 1, 2, 2, 4, 8]) } else { 0 };
    let most = if gpus > 0 { 8_000 * gpus } else { dice.one_of(&[500, 1_000, 2_000, 4_000, 8_000, 16_000]) };
    let cpu = 50 + dice.below(most);
    let memory = 64 + cpu * dice.one_of(&[1, 2, 3, 4, 6]) * (50 + dice.below(100)) / 100;
    let disk = if dice.percent(30) { dice.below(50) * GIB } else { 0 };
    let needs = Amounts { cpu, memory, gpus, disk, pods: 1 };
    let wish = dice.below(12);
    let (seller, region, model) = (dice.below(6), dice.below(4), 1 + dice.below(5));
    let allowed = |one: &Traits| match wish {
        0 => one.seller == seller,
        1 => one.region == region,
        2 => !one.spot,
        3 => !one.arm,
        4 => one.seller != seller && !one.spot,
        5 => one.region != region && !one.arm,
        6 if gpus > 0 => one.model == model,
        7 if gpus > 0 => one.model >= model,
        // Most pods stay off machines with GPUs that they do not need.
        8..=10 if gpus == 0 => one.model == 0,
        _ => true,
    };
    let allowed: KindSet = (0..traits.len()).filter(|at| allowed(&traits[*at])).collect();
    Item { needs, allowed }
}

/// Small numbers that make for hard choices: larger machines are cheaper for what they hold, but not always.
pub fn small(items: usize, kinds: usize, seed: u64) -> (Vec<Item>, Vec<Kind>) {
    let mut dice = Dice::new(seed);
    let kind = |dice: &mut Dice| {
        let size = 4 + dice.below(20);
        let holds = Amounts {
            cpu: size,
            memory: size / 2 + dice.below(size),
            gpus: dice.one_of(&[0, 2, 4]),
            disk: 4 + dice.below(30),
            pods: 2 + dice.below(8),
        };
        let price = 10 + holds.cpu * 3 + holds.memory * 2 + holds.gpus * 15 + dice.below(30);
        Kind { holds, price: Money::from_micros(price as i64) }
    };
    let kinds: Vec<Kind> = (0..kinds).map(|_| kind(&mut dice)).collect();
    let item = |dice: &mut Dice| {
        let needs = Amounts {
            cpu: 1 + dice.below(6),
            memory: dice.below(7),
            gpus: u64::from(dice.percent(20)),
            disk: dice.one_of(&[0, 0, 3, 6]),
            pods: 1,
        };
        let allowed = (0..kinds.len()).filter(|_| dice.percent(80)).collect();
        Item { needs, allowed }
    };
    let items = (0..items).map(|_| item(&mut dice)).collect();
    (items, kinds)
}
