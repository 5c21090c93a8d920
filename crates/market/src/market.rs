// SPDX-License-Identifier: Apache-2.0
//! The market as a process sees it: price lists come in cloud by cloud, questions are answered all the time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bivouac_core::Money;
use jiff::Timestamp;

use crate::catalogue::Catalogue;
use crate::memory::{Memory, Refusal};
use crate::offer::{Arch, Offer, Row};
use crate::select::Decision;
use crate::survey::Survey;
use crate::wish::{Reading, Readings, Situation, Wish};

/// A row that owns its words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub region: String,
    pub zone: String,
    pub machine: String,
    pub gpu: String,
    pub gpus: u32,
    pub gpu_memory_gib: Option<u16>,
    pub vcpus: u32,
    pub memory_mib: u32,
    pub arch: Arch,
    pub currency: String,
    pub on_demand: Option<Money>,
    pub spot: Option<Money>,
    pub sold_out: bool,
}

/// What every question is answered from. It is replaced as a whole, so nobody waits and nobody sees half of it.
#[derive(Clone, Debug)]
pub struct View {
    pub catalogue: Arc<Catalogue>,
    pub readings: Arc<Readings>,
    pub memory: Arc<Memory>,
}

/// All price lists, what came of buying, and the view of both.
#[derive(Debug)]
pub struct Market {
    /// The lists as they were read. Held while a catalogue is made, so that two cannot overtake each other.
    lists: Mutex<BTreeMap<String, Vec<Listing>>>,
    view: RwLock<View>,
}

// === impl Listing ===

impl Listing {
    pub fn row<'a>(&'a self, cloud: &'a str) -> Row<'a> {
        Row {
            cloud,
            region: &self.region,
            zone: &self.zone,
            machine: &self.machine,
            gpu: &self.gpu,
            gpus: self.gpus,
            gpu_memory_gib: self.gpu_memory_gib,
            vcpus: self.vcpus,
            memory_mib: self.memory_mib,
            arch: self.arch,
            currency: &self.currency,
            on_demand: self.on_demand,
            spot: self.spot,
            sold_out: self.sold_out,
        }
    }
}

impl From<Row<'_>> for Listing {
    fn from(row: Row<'_>) -> Self {
        Self {
            region: row.region.to_owned(),
            zone: row.zone.to_owned(),
            machine: row.machine.to_owned(),
            gpu: row.gpu.to_owned(),
            gpus: row.gpus,
            gpu_memory_gib: row.gpu_memory_gib,
            vcpus: row.vcpus,
            memory_mib: row.memory_mib,
            arch: row.arch,
            currency: row.currency.to_owned(),
            on_demand: row.on_demand,
            spot: row.spot,
            sold_out: row.sold_out,
        }
    }
}

// === impl View ===

impl View {
    pub fn situation(&self, now: Timestamp) -> Situation<'_> {
        Situation { now, memory: &self.memory, readings: &self.readings }
    }

    /// See [`Catalogue::choose`].
    pub fn choose(&self, wish: &Wish, now: Timestamp, most: usize) -> Result<Decision, Box<Survey>> {
        self.catalogue.choose(wish, self.situation(now), most)
    }

    pub fn survey(&self, wish: &Wish, now: Timestamp) -> Survey {
        self.catalogue.survey(wish, self.situation(now))
    }
}

// === impl Market ===

impl Default for Market {
    fn default() -> Self {
        let catalogue = Arc::new(Catalogue::new(&[]));
        let view = View { catalogue, readings: Arc::default(), memory: Arc::default() };
        Self { lists: Mutex::default(), view: RwLock::new(view) }
    }
}

impl Market {
    /// What is known now. It stays as it is for as long as it is held.
    pub fn view(&self) -> View {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a cloud's new price list. Questions are answered from the old one until the new one is ready.
    pub fn list(&self, cloud: &str, listings: Vec<Listing>, reading: Reading) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = lists.get(cloud) != Some(&listings);
        let catalogue = is_new.then(|| {
            lists.insert(cloud.to_owned(), listings);
            Arc::new(catalogue_of(&lists))
        });
        self.change(|view| {
            if let Some(catalogue) = catalogue {
                view.catalogue = catalogue;
            }
            Arc::make_mut(&mut view.readings).set(cloud, reading);
        });
    }

    /// A cloud that is not bought from any more.
    pub fn drop_cloud(&self, cloud: &str) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.remove(cloud).is_some() {
            let catalogue = Arc::new(catalogue_of(&lists));
            self.change(|view| {
                view.catalogue = catalogue;
                Arc::make_mut(&mut view.readings).forget(cloud);
            });
        }
    }

    pub fn sold(&self, offer: &Offer<'_>) {
        self.change(|view| Arc::make_mut(&mut view.memory).sold(offer));
    }

    pub fn refused(&self, offer: &Offer<'_>, why: Refusal, now: Timestamp) {
        self.change(|view| {
            let memory = Arc::make_mut(&mut view.memory);
            memory.wake(now);
            memory.refused(offer, why, now);
        });
    }

    fn change(&self, with: impl FnOnce(&mut View)) {
        with(&mut self.view.write().unwrap_or_else(PoisonError::into_inner));
    }
}

fn catalogue_of(lists: &BTreeMap<String, Vec<Listing>>) -> Catalogue {
    let rows = lists.iter().flat_map(|(cloud, listings)| listings.iter().map(|listing| listing.row(cloud)));
    Catalogue::new(&rows.collect::<Vec<_>>())
}
