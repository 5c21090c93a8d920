// SPDX-License-Identifier: Apache-2.0
//! What somebody finds who reads the whole price list; the bench asks the same.

use std::cmp::Reverse;

use bivouac_market::{Allowed, Capacity, Catalogue, Offer, OfferId, Situation, Spot, Wish, labels};

/// Reads every offer. Nothing of the index is used, only what an offer says of itself.
pub fn by_reading(catalogue: &Catalogue, wish: &Wish, now: Situation<'_>, most: usize) -> Vec<OfferId> {
    let right = |offer: &Offer<'_>| {
        let seller = wish.sellers.as_ref().map(|sellers| sellers.get(offer.cloud));
        let sold_by = match seller {
            None => true,
            Some(None) => false,
            Some(Some(seller)) => seller.regions.is_empty() || seller.regions.contains(&offer.region.to_owned()),
        };
        let spot = match wish.spot {
            Spot::Never => offer.capacity == Capacity::OnDemand,
            Spot::Only => offer.capacity == Capacity::Spot,
            Spot::Allowed => true,
        };
        let gpu_is_right = |allowed: &Allowed| offer.gpu.map_or(allowed.may_be_absent(), |gpu| allowed.has_gpu(gpu));
        let labelled = |key: &str, allowed: &Allowed| allowed.admits(offer.label(key).as_deref());
        let others = wish.requirements.iter().filter(|(key, _)| *key != labels::GPU_TYPE && labels::is_well_known(key));
        sold_by
            && spot
            && offer.flaw.is_none()
            && offer.gpus >= wish.least.gpus
            && offer.vcpus >= wish.least.vcpus
            && offer.memory_mib >= wish.least.memory_mib
            && offer.gpu_memory_gib.unwrap_or(0) >= wish.least.gpu_memory_gib
            && wish.max_price.is_none_or(|max| offer.price <= max)
            && !now.readings.is_stale(offer.cloud, now.now)
            && now.memory.rest_of(offer, now.now).is_none()
            && wish.requirements.gpus().iter().all(gpu_is_right)
            && others.into_iter().all(|(key, allowed)| labelled(key, allowed))
    };
    let priority = |offer: &Offer<'_>| {
        wish.sellers.as_ref().and_then(|sellers| sellers.get(offer.cloud)).map_or(0, |seller| seller.priority)
    };
    let rank = |offer: &Offer<'_>| {
        let chance = now.memory.tally(offer).chance();
        (wish.policy.score(offer.price, priority(offer)), Reverse(chance), offer.id)
    };
    let mut all: Vec<_> = catalogue.iter().filter(right).map(|offer| rank(&offer)).collect();
    all.sort();
    all.into_iter().map(|(_, _, id)| id).take(most).collect()
}
