// SPDX-License-Identifier: Apache-2.0
//! The answer of the index against that of somebody who reads the whole list, and what makes one offer better.

use std::collections::BTreeMap;

use bivouac_market::{
    Allowed, Catalogue, Least, Memory, OfferId, Policy, Refusal, Requirements, Row, Seller, Spot, Wish, labels, sample,
    table,
};
use proptest::prelude::*;

use crate::by_reading::by_reading;
use crate::prices::{at, dollars, readings, row, situation};

/// Wishes of all kinds for a catalogue that has the clouds and GPUs of [`sample`].
pub fn any_wish() -> impl Strategy<Value = Wish> {
    let gpus = proptest::sample::subsequence(vec!["A100", "H100", "A100-80GB", "L4", "nvidia t4", "H100-SXM"], 0..3);
    let clouds = proptest::sample::subsequence((0..24).map(|n| format!("c{n}")).collect::<Vec<_>>(), 0..6);
    let least = (0..3_u32, prop_oneof![Just(0_u16), Just(40)], 0..64_u32).prop_map(|(gpus, memory, vcpus)| Least {
        gpus: gpus * 1000,
        gpu_memory_gib: memory,
        vcpus: vcpus * 1000,
        memory_mib: vcpus * 2048,
    });
    let spot = prop_oneof![Just(Spot::Never), Just(Spot::Allowed), Just(Spot::Only)];
    let policy = prop_oneof![Just(Policy::Score), Just(Policy::Strict)];
    let requirement = prop_oneof![
        Just((labels::REGION, Allowed::only(["r1", "r2"]))),
        Just((labels::ZONE, Allowed::only(["r0-1"]))),
        Just((labels::GPU_COUNT, Allowed::only(["8", "4"]))),
        Just((labels::CAPACITY, Allowed::only(["spot"]))),
        Just((labels::GPU_VENDOR, Allowed::only(["amd"]))),
        Just((labels::ARCH, Allowed::only(["amd64"]))),
        Just((labels::GPU_MEMORY, Allowed::any())),
        Just((labels::CLOUD, Allowed::only(["c0", "c7"]))),
        Just(("example.com/team", Allowed::only(["red"]))),
    ];
    let requirements = proptest::collection::vec(requirement, 0..3);
    let max = proptest::option::of(100_000_i64..30_000_000);
    (gpus, clouds, least, spot, policy, requirements, max, 0..30_u32).prop_map(
        |(gpus, clouds, least, spot, policy, requirements, max, priority)| {
            let mut all = Requirements::default();
            if !gpus.is_empty() {
                all.add(labels::GPU_TYPE, Allowed::only(gpus));
            }
            requirements.into_iter().for_each(|(key, allowed)| all.add(key, allowed));
            let seller = |(n, cloud): (u32, String)| {
                let regions = if n == 1 { vec!["r0".to_owned(), "r3".to_owned()] } else { Vec::new() };
                (cloud, Seller { priority: n * priority, regions })
            };
            let sellers: BTreeMap<String, Seller> = (0..).zip(clouds).map(seller).collect();
            let max_price = max.map(bivouac_core::Money::from_micros);
            let sellers = (!sellers.is_empty()).then_some(sellers);
            Wish { requirements: all, least, max_price, spot, sellers, policy }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn the_index_finds_what_reading_everything_finds(wish in any_wish(), seed in 0..4_u64, refused in 0..20_usize) {
        let text = sample::table(1500, seed);
        let catalogue = Catalogue::new(&table::read(&text).unwrap());
        let readings = readings(&catalogue);
        let mut memory = Memory::default();
        for offer in catalogue.iter().step_by(17).take(refused * 5) {
            memory.refused(&offer, [Refusal::Capacity, Refusal::Quota][refused % 2], at(0));
        }
        let now = situation(&memory, &readings, 1);
        let found = catalogue.choose(&wish, now, 5);
        let expected = by_reading(&catalogue, &wish, now, 5);
        match &found {
            Ok(decision) => {
                let ids: Vec<OfferId> = decision.choices.iter().map(|choice| choice.offer).collect();
                prop_assert_eq!(ids, expected);
            }
            Err(survey) => {
                prop_assert!(expected.is_empty());
                prop_assert!(survey.open.is_empty());
            }
        }
        prop_assert_eq!(&found, &catalogue.choose(&wish, now, 5), "the same question has the same answer");
        let all = catalogue.survey(&wish, now).open.len();
        prop_assert_eq!(all, by_reading(&catalogue, &wish, now, usize::MAX).len());
    }
}

/// More than a million rows: ten times what all sellers together list today.
#[test]
fn a_catalogue_ten_times_as_large_has_the_same_answers() {
    let text = sample::table(1_120_160, 3);
    let catalogue = Catalogue::new(&table::read(&text).unwrap());
    assert!(catalogue.len() > 1_120_160, "{}", catalogue.len());
    let (memory, readings) = (Memory::default(), readings(&catalogue));
    let now = situation(&memory, &readings, 0);
    for (gpu, region) in [("H100", "r1"), ("A100-80GB", "r3"), ("L4", "nowhere")] {
        let mut wish = Wish::default();
        wish.requirements.add(labels::GPU_TYPE, Allowed::only([gpu]));
        wish.requirements.add(labels::REGION, Allowed::only([region]));
        let found = catalogue.choose(&wish, now, 5).map(|decision| decision.choices).unwrap_or_default();
        let ids: Vec<OfferId> = found.iter().map(|choice| choice.offer).collect();
        assert_eq!(ids, by_reading(&catalogue, &wish, now, 5), "{gpu} in {region}");
        assert_eq!(ids.is_empty(), region == "nowhere", "{gpu} in {region}");
    }
}

fn best(rows: &[Row<'_>], wish: &Wish) -> String {
    let (catalogue, memory) = (Catalogue::new(rows), Memory::default());
    let readings = readings(&catalogue);
    match catalogue.choose(wish, situation(&memory, &readings, 0), 1) {
        Ok(decision) => catalogue.get(decision.choices[0].offer).unwrap().cloud.to_owned(),
        Err(survey) => survey.to_string(),
    }
}

fn sellers(all: &[(&str, u32)]) -> Option<BTreeMap<String, Seller>> {
    let seller =
        |(name, priority): &(&str, u32)| ((*name).to_owned(), Seller { priority: *priority, regions: Vec::new() });
    Some(all.iter().map(seller).collect())
}

#[test]
fn a_priority_makes_a_seller_look_a_tenth_dearer_each() {
    let rows = [row("a", "r", "m", "L4", "1.00"), row("b", "r", "m", "L4", "0.84")];
    let with = |priority, policy| Wish { sellers: sellers(&[("a", 0), ("b", priority)]), policy, ..Wish::default() };
    assert_eq!(best(&rows, &with(0, Policy::Score)), "b");
    assert_eq!(best(&rows, &with(1, Policy::Score)), "b", "0.924 looks better than 1.00");
    assert_eq!(best(&rows, &with(2, Policy::Score)), "a", "1.008 does not");
    assert_eq!(best(&rows, &with(1, Policy::Strict)), "a", "the most liked has one");
    assert_eq!(best(&rows, &Wish { sellers: sellers(&[("b", 9)]), ..Wish::default() }), "b");
    let far = Wish { sellers: sellers(&[("a", u32::MAX), ("b", u32::MAX)]), ..Wish::default() };
    assert_eq!(best(&rows, &far), "b", "no priority is too large to count");
}

#[test]
fn nothing_found_says_what_stood_in_the_way() {
    let rows =
        [row("a", "east", "m", "L4", "1.00"), row("b", "west", "m", "L4", "0.80"), row("b", "east", "n", "L4", "0")];
    let wish = |change: fn(&mut Wish)| {
        let mut wish = Wish::default();
        change(&mut wish);
        best(&rows, &wish)
    };
    assert_eq!(wish(|wish| wish.least.gpus = 9000), "nobody sells such a machine");
    assert_eq!(
        wish(|wish| wish.max_price = Some(dollars("0.50"))),
        "no offer can be taken: 2 above the highest price allowed, the cheapest at $0.80 an hour; 1 left out, because its price is zero"
    );
    assert_eq!(
        wish(|wish| wish.requirements.add(labels::REGION, Allowed::only(["north"]))),
        "no offer can be taken: 2 only in other places; 1 left out, because its price is zero"
    );
    let flexible = |wish: &mut Wish| {
        wish.requirements.add(labels::CLOUD, Allowed::any().with_at_least(3));
    };
    assert_eq!(
        wish(flexible),
        "no offer can be taken: tgp.io/provider has 2 values to choose from and 3 must be left; 1 left out, because its price is zero"
    );
    let enough = |wish: &mut Wish| {
        wish.requirements.add(labels::CLOUD, Allowed::any().with_at_least(2));
    };
    assert_eq!(wish(enough), "b");
}
