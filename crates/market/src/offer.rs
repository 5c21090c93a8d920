// SPDX-License-Identifier: Apache-2.0
//! What is sold: a machine of a cloud, in a place, paid for in a certain way.

use std::fmt;

use bivouac_core::Money;

use crate::gpu::Gpu;
use crate::labels;

/// How a machine is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capacity {
    OnDemand,
    /// Cheaper, and the cloud may take it back.
    Spot,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arch {
    #[default]
    Amd64,
    Arm64,
}

/// One line of a seller's price list. What a seller does not say is empty, or `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row<'a> {
    pub cloud: &'a str,
    pub region: &'a str,
    pub zone: &'a str,
    /// The seller's name of the machine type; without one there is nothing to order.
    pub machine: &'a str,
    /// The seller's name of the GPU, empty for a machine without one.
    pub gpu: &'a str,
    /// In thousandths: some sell an eighth of a GPU.
    pub gpus: u32,
    /// Of one GPU; where it is `None` the name tells, or nobody knows.
    pub gpu_memory_gib: Option<u16>,
    /// In thousandths.
    pub vcpus: u32,
    pub memory_mib: u32,
    pub arch: Arch,
    /// As a code of three letters; empty means dollars.
    pub currency: &'a str,
    pub on_demand: Option<Money>,
    pub spot: Option<Money>,
    /// The seller says that there is none left.
    pub sold_out: bool,
}

/// Why an offer is not to be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flaw {
    /// Nobody gives machines away.
    Zero,
    Negative,
    /// Not in dollars.
    Currency,
    /// Far below what the same GPU costs elsewhere.
    TooCheap,
    /// Far above it.
    TooDear,
    /// Above it by so much that it is rather a price for another time or in another unit.
    Unit,
    /// The same machine stands in the list again, at a higher price.
    Twice,
    /// A part, such as a GPU alone: nothing that can be ordered.
    NoMachine,
    /// Not doubtful, only gone.
    SoldOut,
}

/// One thing that can be bought, seen in a catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<'a> {
    pub id: OfferId,
    pub cloud: &'a str,
    pub region: &'a str,
    pub zone: &'a str,
    pub machine: &'a str,
    pub gpu: Option<&'a Gpu>,
    /// In thousandths.
    pub gpus: u32,
    pub gpu_memory_gib: Option<u16>,
    /// In thousandths.
    pub vcpus: u32,
    pub memory_mib: u32,
    pub arch: Arch,
    pub capacity: Capacity,
    /// Per hour.
    pub price: Money,
    pub flaw: Option<Flaw>,
}

/// Where an offer stands in its catalogue; another catalogue has another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferId(pub(crate) u32);

// === impl Capacity ===

impl Capacity {
    pub const ALL: [Self; 2] = [Self::OnDemand, Self::Spot];

    pub fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

// === impl Arch ===

impl Arch {
    pub fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

// === impl Flaw ===

impl Flaw {
    pub const ALL: [Self; 9] = [
        Self::Zero,
        Self::Negative,
        Self::Currency,
        Self::TooCheap,
        Self::TooDear,
        Self::Unit,
        Self::Twice,
        Self::NoMachine,
        Self::SoldOut,
    ];

    /// Whether it is the price that nobody should believe.
    pub fn is_doubt(self) -> bool {
        !matches!(self, Self::NoMachine | Self::SoldOut)
    }

    /// Completes "it is left out, because …".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Zero => "its price is zero",
            Self::Negative => "its price is below zero",
            Self::Currency => "its price is not in dollars",
            Self::TooCheap => "it costs far less than the same elsewhere",
            Self::TooDear => "it costs far more than the same elsewhere",
            Self::Unit => "its price looks like one per month or per year, or in another unit",
            Self::Twice => "it is listed twice, and the other price is higher",
            Self::NoMachine => "it names no machine that could be ordered",
            Self::SoldOut => "it is sold out",
        }
    }
}

// === impl Offer ===

impl Offer<'_> {
    /// What a node of it is labelled with.
    pub fn label(&self, key: &str) -> Option<String> {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        match key {
            labels::ARCH => text(self.arch.name()),
            labels::OS => text("linux"),
            labels::MACHINE => text(self.machine),
            labels::TOPOLOGY_REGION | labels::REGION => text(self.region),
            labels::ZONE => text(self.zone),
            labels::CLOUD => text(self.cloud),
            labels::GPU_TYPE => self.gpu.map(Gpu::to_string),
            labels::GPU_COUNT => Some(thousandths(self.gpus)),
            labels::GPU_MEMORY => self.gpu_memory_gib.map(|memory| memory.to_string()),
            labels::GPU_VENDOR => self.gpu.and_then(Gpu::vendor).map(|vendor| vendor.name().to_owned()),
            labels::CAPACITY => text(self.capacity.name()),
            labels::SPOT => text(if self.capacity == Capacity::Spot { "true" } else { "false" }),
            _ => None,
        }
    }
}

/// `8`, `0.5`: a number of thousandths as people write it.
pub fn thousandths(number: u32) -> String {
    let (whole, rest) = (number / 1000, number % 1000);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:03}").trim_end_matches('0').to_owned() }
}
