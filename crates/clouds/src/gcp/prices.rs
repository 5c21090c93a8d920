// SPDX-License-Identifier: Apache-2.0
//! What a machine costs at Google: there is no price for it, only for its cores, its memory and its GPUs, each by region
//! and by way of paying, in a list of some thousand sentences.

use std::collections::BTreeMap;

use bivouac_core::Money;
use bivouac_market::{Capacity, Gpu};
use serde::Deserialize;

/// One line of the price list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sku {
    #[serde(default)]
    description: String,
    #[serde(default)]
    category: Category,
    #[serde(default)]
    service_regions: Vec<String>,
    #[serde(default)]
    pricing_info: Vec<PricingInfo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Category {
    #[serde(default)]
    resource_family: String,
    #[serde(default)]
    usage_type: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PricingInfo {
    pricing_expression: PricingExpression,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PricingExpression {
    #[serde(default)]
    tiered_rates: Vec<Rate>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rate {
    unit_price: UnitPrice,
}

#[derive(Debug, Deserialize)]
struct UnitPrice {
    #[serde(default)]
    units: String,
    #[serde(default)]
    nanos: i64,
}

/// What a price is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Of a family, such as `g2`.
    Core(String),
    Memory(String),
    Gpu(Gpu),
}

/// Prices by part, region and way of paying, in billionths of a dollar.
#[derive(Debug, Default)]
pub struct PriceList(BTreeMap<(Part, String, Capacity), i128>);

/// What a machine is made of.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    /// `g2-standard-4` is of the family `g2`.
    pub family: &'a str,
    pub cores: u32,
    pub memory_mib: u32,
    pub gpu: &'a Gpu,
    pub gpus: u32,
}

// === impl PriceList ===

impl PriceList {
    pub fn add(&mut self, sku: &Sku) {
        let Some((part, capacity)) = sku.part() else { return };
        let Some(nanos) = sku.nanos() else { return };
        for region in &sku.service_regions {
            // Two prices for the same: whoever plans with the higher one is never surprised.
            let price = self.0.entry((part.clone(), region.clone(), capacity)).or_default();
            *price = (*price).max(nanos);
        }
    }

    /// Per hour. `None` if a part has no price: half a price would make it look cheap.
    pub fn price(&self, parts: &Parts<'_>, region: &str, capacity: Capacity) -> Option<Money> {
        let of = |part: Part| self.0.get(&(part, region.to_owned(), capacity)).copied();
        let family = || parts.family.to_owned();
        let cores = of(Part::Core(family()))?.checked_mul(i128::from(parts.cores))?;
        let memory = of(Part::Memory(family()))?.checked_mul(i128::from(parts.memory_mib))? / 1024;
        let gpus = of(Part::Gpu(parts.gpu.chip()))?.checked_mul(i128::from(parts.gpus))?;
        let micros = (cores + memory + gpus + 999).div_euclid(1000);
        i64::try_from(micros).ok().map(Money::from_micros)
    }
}

// === impl Sku ===

impl Sku {
    /// Read from the sentence: `Spot Preemptible G2 Instance Core running in Iowa`, `Nvidia L4 GPU running in Iowa`.
    fn part(&self) -> Option<(Part, Capacity)> {
        if self.category.resource_family != "Compute" {
            return None;
        }
        // Some spot prices have the wrong type beside a sentence that is right.
        let says_spot = self.description.contains("Spot") || self.description.contains("Preemptible");
        let capacity = match self.category.usage_type.as_str() {
            "OnDemand" if !says_spot => Capacity::OnDemand,
            "OnDemand" | "Preemptible" => Capacity::Spot,
            _ => return None,
        };
        let (what, _) = self.description.split_once(" running in ")?;
        let what = what.trim_start_matches("Spot ").trim_start_matches("Preemptible ").trim();
        let what = what.strip_suffix(" attached to Spot Preemptible VMs").unwrap_or(what);
        if let Some(gpu) = what.strip_suffix(" GPU") {
            return Some((Part::Gpu(Gpu::named(gpu).chip()), capacity));
        }
        let family = |text: &str| {
            let word = text.split(' ').next().unwrap_or_default().to_ascii_lowercase();
            (!word.is_empty() && !text.contains("Custom") && !text.contains("Sole Tenancy")).then_some(word)
        };
        if let Some(text) = what.strip_suffix(" Instance Core") {
            return Some((Part::Core(family(text)?), capacity));
        }
        what.strip_suffix(" Instance Ram").and_then(|text| Some((Part::Memory(family(text)?), capacity)))
    }

    /// The price of the last tier: the first may be a free allowance.
    fn nanos(&self) -> Option<i128> {
        let rate = self.pricing_info.first()?.pricing_expression.tiered_rates.last()?;
        let units: i128 = if rate.unit_price.units.is_empty() { 0 } else { rate.unit_price.units.parse().ok()? };
        Some(units * 1_000_000_000 + i128::from(rate.unit_price.nanos))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sku(description: &str, usage: &str, units: &str, nanos: i64) -> Sku {
        serde_json::from_value(json!({
            "description": description,
            "category": { "resourceFamily": "Compute", "usageType": usage },
            "serviceRegions": ["us-central1"],
            "pricingInfo": [{ "pricingExpression": { "tieredRates": [{ "unitPrice": { "units": units, "nanos": nanos } }] } }],
        }))
        .unwrap()
    }

    #[test]
    fn a_machine_costs_what_its_parts_cost() {
        let mut list = PriceList::default();
        for one in [
            sku("G2 Instance Core running in Iowa", "OnDemand", "0", 24_988_000),
            sku("G2 Instance Ram running in Iowa", "OnDemand", "0", 2_927_000),
            sku("Nvidia L4 GPU running in Iowa", "OnDemand", "0", 560_040_000),
            sku("Spot Preemptible G2 Instance Core running in Iowa", "Preemptible", "0", 9_000_000),
            sku("Spot Preemptible G2 Instance Ram running in Iowa", "OnDemand", "0", 1_000_000),
            sku("Nvidia L4 GPU attached to Spot Preemptible VMs running in Iowa", "Preemptible", "0", 200_000_000),
            sku("Commitment v1: G2 Cpu in Iowa for 1 Year", "Commit1Yr", "0", 1),
            sku("G2 Sole Tenancy Instance Core running in Iowa", "OnDemand", "9", 0),
        ] {
            list.add(&one);
        }
        let gpu = Gpu::named("nvidia-l4");
        let parts = Parts { family: "g2", cores: 4, memory_mib: 16 * 1024, gpu: &gpu, gpus: 1 };
        let price = |capacity| list.price(&parts, "us-central1", capacity).map(|price| price.to_string());
        assert_eq!(price(Capacity::OnDemand).as_deref(), Some("0.706824"));
        assert_eq!(price(Capacity::Spot).as_deref(), Some("0.252"));
        assert_eq!(list.price(&parts, "europe-west4", Capacity::OnDemand), None);
        assert_eq!(list.price(&Parts { family: "a3", ..parts }, "us-central1", Capacity::OnDemand), None);
    }

    #[test]
    fn dollars_and_billionths_add_up() {
        assert_eq!(sku("Nvidia B200 GPU running in Iowa", "OnDemand", "12", 500_000_000).nanos(), Some(12_500_000_000));
        assert!(sku("Nvidia B200 GPU running in Iowa", "OnDemand", "many", 0).nanos().is_none());
    }
}
