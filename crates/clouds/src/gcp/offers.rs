// SPDX-License-Identifier: Apache-2.0
//! Machine types with GPUs in them, and those that GPUs can be put into, each with the price of its parts.

use bivouac_market::{Arch, Capacity, Gpu, Listing};
use http::Method;

use super::prices::{Parts, PriceList};
use super::wire::{AcceleratorType, MachineType, Skus, Zone};
use super::{Gcp, region_of};
use crate::fault::{Fault, Operation};
use crate::pages::Cursors;

/// Compute Engine, in the price list of everything.
const SERVICE: &str = "/v1/services/6F81-5844-456A/skus";
/// GPUs that are put into machines of the family n1, eight cores and 30 GiB for each of them.
const LOOSE: [&str; 4] = ["nvidia-tesla-t4", "nvidia-tesla-v100", "nvidia-tesla-p100", "nvidia-tesla-p4"];
const COUNTS: [u32; 3] = [1, 2, 4];

// === impl Gcp ===

impl Gcp {
    pub(super) async fn listings(&self) -> Result<Vec<Listing>, Fault> {
        let prices = self.prices().await?;
        let types = self.aggregated(Operation::Offers, "machineTypes", None).await?;
        let loose = self.aggregated(Operation::Offers, "acceleratorTypes", None).await?;
        let mut all = Vec::new();
        for (name, zone) in &types {
            all.extend(whole(zone).filter_map(|kind| listing(&prices, name, kind)));
        }
        for (name, zone) in &loose {
            all.extend(zone.accelerator_types.iter().flat_map(|kind| assembled(&prices, name, kind)));
        }
        Ok(all)
    }

    async fn prices(&self) -> Result<PriceList, Fault> {
        let (mut prices, mut cursors, mut cursor) = (PriceList::default(), Cursors::default(), None::<String>);
        loop {
            let mut call = self.call(&self.billing, Operation::Offers, Method::GET, SERVICE.to_owned()).await?;
            call = call.query("currencyCode", "USD").query("pageSize", 5000);
            if let Some(cursor) = &cursor {
                call = call.query("pageToken", cursor);
            }
            let page: Skus = call.read().await?;
            page.skus.iter().for_each(|sku| prices.add(sku));
            cursor = cursors.next(&self.billing, Operation::Offers, page.next_page_token)?;
            if cursor.is_none() {
                return Ok(prices);
            }
        }
    }
}

fn whole(zone: &Zone) -> impl Iterator<Item = &MachineType> {
    zone.machine_types.iter().filter(|kind| !kind.accelerators.is_empty() && kind.deprecated.is_none())
}

fn listing(prices: &PriceList, zone: &str, kind: &MachineType) -> Option<Listing> {
    let accelerator = kind.accelerators.first()?;
    let gpu = Gpu::named(&accelerator.guest_accelerator_type);
    let parts = Parts {
        family: kind.name.split('-').next().unwrap_or_default(),
        cores: kind.guest_cpus,
        memory_mib: kind.memory_mb,
        gpu: &gpu,
        gpus: accelerator.guest_accelerator_count,
    };
    let mut listing = priced(prices, zone, &parts);
    listing.machine = kind.name.clone();
    listing.gpu = accelerator.guest_accelerator_type.clone();
    if kind.architecture.as_deref() == Some("ARM64") {
        listing.arch = Arch::Arm64;
    }
    Some(listing)
}

fn assembled(prices: &PriceList, zone: &str, kind: &AcceleratorType) -> Vec<Listing> {
    if !LOOSE.contains(&kind.name.as_str()) {
        return Vec::new();
    }
    let gpu = Gpu::named(&kind.name);
    let fitting = COUNTS.into_iter().filter(|count| *count <= kind.maximum_cards_per_instance.max(1));
    let of = |gpus: u32| {
        let parts = Parts { family: "n1", cores: 8 * gpus, memory_mib: 30 * 1024 * gpus, gpu: &gpu, gpus };
        let mut listing = priced(prices, zone, &parts);
        listing.machine = format!("n1-standard-{}+{gpus}x{}", 8 * gpus, kind.name);
        listing.gpu = kind.name.clone();
        listing
    };
    fitting.map(of).collect()
}

fn priced(prices: &PriceList, zone: &str, parts: &Parts<'_>) -> Listing {
    let region = region_of(zone);
    Listing {
        region: region.to_owned(),
        zone: zone.to_owned(),
        gpus: parts.gpus.saturating_mul(1000),
        vcpus: parts.cores.saturating_mul(1000),
        memory_mib: parts.memory_mib,
        on_demand: prices.price(parts, region, Capacity::OnDemand),
        spot: prices.price(parts, region, Capacity::Spot),
        ..Listing::default()
    }
}
