// SPDX-License-Identifier: Apache-2.0
//! What clouds said a moment ago, on disk, so that the next question is answered at once.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bivouac_core::Money;
use bivouac_market::{Arch, Listing};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Prices of an API are good for so long.
const GOOD_FOR: SignedDuration = SignedDuration::from_mins(5);
/// What an older program wrote is not read.
const VERSION: u32 = 1;

#[derive(Debug, Default, Serialize, Deserialize)]
struct File {
    version: u32,
    /// By cloud and credential: another account may see other prices.
    lists: BTreeMap<String, Kept>,
}

/// One cloud's price list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    pub read_at: Timestamp,
    offers: Vec<Saved>,
}

/// An offer as the file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Saved {
    region: String,
    zone: String,
    machine: String,
    gpu: String,
    gpus: u32,
    gpu_memory_gib: Option<u16>,
    vcpus: u32,
    memory_mib: u32,
    arm64: bool,
    currency: String,
    on_demand: Option<Money>,
    spot: Option<Money>,
    sold_out: bool,
}

#[derive(Debug)]
pub struct Cache {
    path: Option<PathBuf>,
    file: File,
}

// === impl Cache ===

impl Cache {
    /// `$XDG_CACHE_HOME/bivouac/offers.json`. A file that cannot be read is none.
    pub fn open() -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
        let path = folder.map(|folder| folder.join("bivouac/offers.json"));
        let text = path.as_ref().and_then(|path| std::fs::read(path).ok());
        let file: Option<File> = text.and_then(|text| serde_json::from_slice(&text).ok());
        Self { path, file: file.filter(|file| file.version == VERSION).unwrap_or_default() }
    }

    /// What is good still.
    pub fn fresh(&self, key: &str, now: Timestamp) -> Option<&Kept> {
        self.file.lists.get(key).filter(|kept| is_fresh(kept, now))
    }

    pub fn keep(&mut self, key: String, listings: &[Listing], now: Timestamp) {
        self.file.lists.retain(|_, kept| is_fresh(kept, now));
        let kept = Kept { read_at: now, offers: listings.iter().map(Saved::from).collect() };
        self.file.lists.insert(key, kept);
    }

    /// Nothing depends on it, so a full disk is no failure. Others see the old file or the new one.
    pub fn save(&mut self) {
        let Some(path) = &self.path else { return };
        self.file.version = VERSION;
        let Ok(text) = serde_json::to_vec(&self.file) else { return };
        let draft = path.with_extension(format!("{}.new", std::process::id()));
        let folder = path.parent().map(std::fs::create_dir_all);
        if folder.is_some_and(|made| made.is_ok()) && std::fs::write(&draft, text).is_ok() {
            let _ = std::fs::rename(&draft, path);
        }
        let _ = std::fs::remove_file(&draft);
    }
}

/// A time in the future is a clock that was wrong.
fn is_fresh(kept: &Kept, now: Timestamp) -> bool {
    (SignedDuration::ZERO..=GOOD_FOR).contains(&now.duration_since(kept.read_at))
}

// === impl Kept ===

impl Kept {
    pub fn listings(&self) -> Vec<Listing> {
        self.offers.iter().cloned().map(Listing::from).collect()
    }
}

impl From<&Listing> for Saved {
    fn from(one: &Listing) -> Self {
        Self {
            region: one.region.clone(),
            zone: one.zone.clone(),
            machine: one.machine.clone(),
            gpu: one.gpu.clone(),
            gpus: one.gpus,
            gpu_memory_gib: one.gpu_memory_gib,
            vcpus: one.vcpus,
            memory_mib: one.memory_mib,
            arm64: one.arch == Arch::Arm64,
            currency: one.currency.clone(),
            on_demand: one.on_demand,
            spot: one.spot,
            sold_out: one.sold_out,
        }
    }
}

impl From<Saved> for Listing {
    fn from(one: Saved) -> Self {
        Self {
            region: one.region,
            zone: one.zone,
            machine: one.machine,
            gpu: one.gpu,
            gpus: one.gpus,
            gpu_memory_gib: one.gpu_memory_gib,
            vcpus: one.vcpus,
            memory_mib: one.memory_mib,
            arch: if one.arm64 { Arch::Arm64 } else { Arch::Amd64 },
            currency: one.currency,
            on_demand: one.on_demand,
            spot: one.spot,
            sold_out: one.sold_out,
        }
    }
}
