// SPDX-License-Identifier: Apache-2.0
//! Ring 1: the packer against first fit, against every way there is, and by name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod named;
mod sample;
mod yardstick;

use bivouac_core::Money;
use bivouac_market::pack::{Amounts, Item, Kind, KindSet};
use bivouac_market::{Packing, pack, pack_by_price};
use proptest::prelude::*;
use proptest::sample::Index;
use yardstick::{check, first_fit, least_cost};

/// Both ways to pack, checked by all rules.
fn packed(items: &[Item], kinds: &[Kind]) -> (Packing, Packing) {
    let reference = first_fit(items, kinds);
    let (few, cheap) = (pack(items, kinds), pack_by_price(items, kinds));
    let checked = |packing| check(packing, items, kinds).unwrap_or_else(|flaw| panic!("{flaw}\n{items:?}\n{kinds:?}"));
    let (by_nodes, by_price) = (checked(&few), checked(&cheap));
    assert_eq!(by_nodes.unplaceable, reference.unplaceable);
    assert!(by_nodes.nodes <= reference.nodes, "{by_nodes:?}, and first fit {reference:?}");
    assert!(by_nodes.cost <= reference.cost, "{by_nodes:?}, and first fit {reference:?}");
    assert!(by_price.cost <= reference.cost, "{by_price:?}, and first fit {reference:?}");
    (few, cheap)
}

/// Amounts up to these; each of the last three is nothing so often, in percent.
fn any_amounts(most: [u64; 5], nothing: u32) -> impl Strategy<Value = Amounts> {
    let rare = move |most| prop_oneof![nothing => Just(0), 100 - nothing => 0..=most];
    let [cpu, memory, gpus, disk, pods] = most;
    (0..=cpu, 0..=memory, rare(gpus), rare(disk), rare(pods)).prop_map(|(cpu, memory, gpus, disk, pods)| Amounts {
        cpu,
        memory,
        gpus,
        disk,
        pods,
    })
}

fn any_kinds() -> impl Strategy<Value = Vec<Kind>> {
    // Few different prices, so that many are equal; some kinds are not for sale.
    let kind = (any_amounts([40, 40, 8, 30, 12], 15), -1..20_i64)
        .prop_map(|(holds, price)| Kind { holds, price: Money::from_micros(price) });
    let twins = prop::collection::vec(any::<Index>(), 0..4);
    (prop::collection::vec(kind, 1..9), twins).prop_map(|(mut kinds, twins)| {
        // The same machine from another seller.
        kinds.extend(twins.iter().map(|twin| twin.get(&kinds).clone()).collect::<Vec<_>>());
        kinds
    })
}

fn any_question(most_items: usize) -> impl Strategy<Value = (Vec<Item>, Vec<Kind>)> {
    any_kinds().prop_flat_map(move |kinds| {
        let all = KindSet::all(kinds.len());
        let (odd, even) = (0..kinds.len()).partition::<Vec<usize>, _>(|kind| kind % 2 == 1);
        let some = prop::collection::vec(0..kinds.len(), 0..kinds.len()).prop_map(|some| some.into_iter().collect());
        let halves = prop_oneof![Just(odd.into_iter().collect::<KindSet>()), Just(even.into_iter().collect())];
        let allowed = prop_oneof![3 => Just(all), 1 => halves, 1 => some];
        let item = (any_amounts([12, 12, 3, 12, 2], 70), allowed).prop_map(|(needs, allowed)| Item { needs, allowed });
        (prop::collection::vec(item, 0..most_items), Just(kinds))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn never_worse_than_first_fit((items, kinds) in prop_oneof![3 => any_question(20), 1 => any_question(60)]) {
        let (few, cheap) = packed(&items, &kinds);
        prop_assert_eq!(&few, &pack(&items, &kinds), "the same question has the same answer");
        prop_assert_eq!(&cheap, &pack_by_price(&items, &kinds));
    }

    #[test]
    fn the_order_of_kinds_breaks_nothing((items, kinds) in any_question(20), by in any::<Index>()) {
        let (count, by) = (kinds.len(), by.index(kinds.len()));
        let turned: Vec<Kind> = (0..count).map(|kind| kinds[(kind + by) % count].clone()).collect();
        let turn = |set: &KindSet| set.iter().map(|kind| (kind + count - by) % count).collect();
        let items_turned: Vec<Item> =
            items.iter().map(|item| Item { needs: item.needs, allowed: turn(&item.allowed) }).collect();
        let (few, cheap) = packed(&items, &kinds);
        let (few_turned, cheap_turned) = packed(&items_turned, &turned);
        prop_assert_eq!(few.unplaceable, few_turned.unplaceable);
        if items.len() <= 10 {
            prop_assert_eq!((few.cost, cheap.cost), (few_turned.cost, cheap_turned.cost), "few items are packed best");
        }
    }
}

proptest! {
    #[test]
    fn few_items_are_packed_best((items, kinds) in any_question(9)) {
        let (few, cheap) = packed(&items, &kinds);
        let least = |most_nodes| least_cost(&items, &kinds, most_nodes);
        prop_assert_eq!(Some(i128::from(few.cost.micros())), least(first_fit(&items, &kinds).nodes));
        prop_assert_eq!(Some(i128::from(cheap.cost.micros())), least(usize::MAX));
    }

    #[test]
    fn a_set_has_what_was_put_in(kinds in prop::collection::btree_set(0..300_usize, 0..40)) {
        let set: KindSet = kinds.iter().copied().collect();
        prop_assert!((0..400).all(|kind| set.has(kind) == kinds.contains(&kind)));
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), kinds.into_iter().collect::<Vec<_>>());
    }
}

/// How often the best is reached, out of so many made-up questions.
fn times_best(questions: u64, items: usize, kinds: usize) -> (u64, u64) {
    let (mut by_nodes, mut by_price) = (0, 0);
    for seed in 0..questions {
        let (items, kinds) = sample::small(items, kinds, seed);
        let (few, cheap) = packed(&items, &kinds);
        let judge = |packing: &Packing, most_nodes: usize| {
            let least = least_cost(&items, &kinds, most_nodes).unwrap();
            let cost = i128::from(packing.cost.micros());
            assert!(cost >= least, "{packing:?} is cheaper than the cheapest, {least}");
            u64::from(cost == least)
        };
        by_nodes += judge(&few, first_fit(&items, &kinds).nodes);
        by_price += judge(&cheap, usize::MAX);
    }
    println!("{items} items, {kinds} kinds: the best in {by_nodes} and {by_price} of {questions}");
    (by_nodes, by_price)
}

#[test]
fn small_questions_get_the_best_answer() {
    assert_eq!(times_best(200, 7, 4), (200, 200));
}

#[test]
fn larger_questions_mostly_get_the_best_answer() {
    let (by_nodes, by_price) = times_best(50, 12, 4);
    assert!(by_nodes >= 46 && by_price >= 44, "{by_nodes} and {by_price}");
}

/// What first fit pays for few nodes is far too much.
#[test]
fn a_market_of_many_kinds() {
    for seed in 0..2 {
        let (items, kinds) = sample::diverse(120, 150, seed);
        let (few, cheap) = packed(&items, &kinds);
        let reference = first_fit(&items, &kinds);
        println!("first fit {reference:?}, packed {} on {}", few.cost, few.nodes.len());
        println!("by price {} on {}", cheap.cost, cheap.nodes.len());
        assert!(i128::from(few.cost.micros()) * 10 < reference.cost * 6, "{} of {}", few.cost, reference.cost);
        assert!(cheap.cost < few.cost);
    }
}
