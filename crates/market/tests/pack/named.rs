// SPDX-License-Identifier: Apache-2.0
//! Cases that are worth a name.

use bivouac_core::Money;
use bivouac_market::pack;
use bivouac_market::pack::{Amounts, Item, Kind, KindSet, Node};

use super::packed;

const CPU: Amounts = Amounts { cpu: 1000, memory: 1024, gpus: 0, disk: 0, pods: 1 };
const GPU: Amounts = Amounts { cpu: 4000, memory: 16_384, gpus: 1, disk: 0, pods: 1 };

fn times(amounts: Amounts, times: u64) -> Amounts {
    Amounts {
        cpu: amounts.cpu * times,
        memory: amounts.memory * times,
        gpus: amounts.gpus * times,
        disk: amounts.disk * times,
        pods: amounts.pods * times,
    }
}

fn kind(holds: Amounts, price: &str) -> Kind {
    Kind { holds, price: price.parse().unwrap() }
}

fn items(needs: Amounts, count: usize, kinds: usize) -> Vec<Item> {
    vec![Item { needs, allowed: KindSet::all(kinds) }; count]
}

#[test]
fn nothing_to_place_costs_nothing() {
    let (few, cheap) = packed(&[], &[kind(CPU, "1")]);
    assert_eq!((&few.nodes, &few.unplaceable, few.cost), (&vec![], &vec![], Money::ZERO));
    assert_eq!(few, cheap);
    assert_eq!(packed(&[], &[]).0, few);
}

#[test]
fn without_kinds_nothing_is_placeable() {
    assert_eq!(packed(&items(CPU, 3, 1), &[]).0.unplaceable, [0, 1, 2]);
}

#[test]
fn what_is_larger_than_everything_stays() {
    let small = items(CPU, 2, 1);
    for needs in [
        Amounts { cpu: 4001, ..CPU },
        Amounts { memory: 4097, ..CPU },
        Amounts { gpus: 1, ..CPU },
        Amounts { disk: 1, ..CPU },
        Amounts { pods: 5, ..CPU },
    ] {
        let all = [items(needs, 1, 1), small.clone()].concat();
        let (few, _) = packed(&all, &[kind(times(CPU, 4), "0.20")]);
        assert_eq!(few.unplaceable, [0], "{needs:?}");
        assert_eq!(few.nodes, [Node { kind: 0, items: vec![1, 2] }]);
    }
}

#[test]
fn what_may_run_nowhere_stays() {
    // The second kind that the item asks for is not in the list.
    let nowhere = [KindSet::default(), [1].into_iter().collect()];
    for allowed in nowhere {
        let (few, cheap) = packed(&[Item { needs: CPU, allowed }], &[kind(CPU, "1")]);
        assert_eq!((few.unplaceable, few.nodes, cheap.unplaceable), (vec![0], vec![], vec![0]));
    }
}

#[test]
fn a_kind_without_a_price_is_never_used() {
    let free = Kind { holds: times(CPU, 100), price: Money::ZERO };
    let negative = Kind { holds: times(CPU, 100), price: Money::from_micros(-5) };
    let (few, cheap) = packed(&items(CPU, 3, 3), &[free.clone(), kind(CPU, "1"), negative]);
    assert!(few.nodes.iter().chain(&cheap.nodes).all(|node| node.kind == 1));
    assert_eq!(few.cost, "3".parse().unwrap());
    assert_eq!(packed(&items(CPU, 3, 1), &[free]).0.unplaceable, [0, 1, 2]);
}

#[test]
fn pods_without_gpus_use_what_gpu_machines_have_left() {
    let with_gpus = kind(Amounts { cpu: 16_000, memory: 65_536, gpus: 2, disk: 0, pods: 10 }, "2.50");
    let without = kind(Amounts { cpu: 8000, memory: 32_768, gpus: 0, disk: 0, pods: 10 }, "0.40");
    let all = [items(CPU, 6, 2), items(GPU, 2, 2)].concat();
    let (few, _) = packed(&all, &[with_gpus.clone(), without.clone()]);
    assert_eq!(few.nodes, [Node { kind: 0, items: (0..8).collect() }], "eight cores are left");

    // Three more do not fit there by their number, and need no GPU.
    let all = [items(CPU, 9, 2), items(GPU, 2, 2)].concat();
    let (few, _) = packed(&all, &[with_gpus, without]);
    assert_eq!(few.cost, "2.90".parse().unwrap());
    assert!(few.nodes.iter().any(|node| node.kind == 0 && node.items.contains(&9) && node.items.contains(&10)));
}

#[test]
fn amounts_that_cannot_be_summed_are_not_on_one_machine() {
    let most = Amounts { cpu: u64::MAX, memory: u64::MAX, gpus: u64::MAX, disk: u64::MAX, pods: u64::MAX };
    for count in [3, 12] {
        let (few, cheap) = packed(&items(most, count, 1), &[kind(most, "1")]);
        assert_eq!((few.nodes.len(), cheap.nodes.len()), (count, count));
    }
    // Half of the most twice is nearly the most; a third one is too much.
    let half = Amounts { cpu: u64::MAX / 2, ..Amounts::default() };
    assert_eq!(packed(&items(half, 12, 1), &[kind(most, "1")]).0.nodes.len(), 6);
}

#[test]
fn a_cost_that_cannot_be_counted_is_the_most() {
    let (few, _) = packed(&items(CPU, 12, 1), &[Kind { holds: CPU, price: Money::MAX }]);
    assert_eq!((few.nodes.len(), few.cost), (12, Money::MAX));
}

#[test]
fn one_large_machine_or_many_small_ones_whichever_is_cheaper() {
    let kinds = |large: &str| [kind(times(CPU, 2), "0.10"), kind(times(CPU, 32), large)];
    let (few, cheap) = packed(&items(CPU, 32, 2), &kinds("1.50"));
    assert_eq!((few.nodes.len(), cheap.nodes.len()), (1, 1), "16 small ones cost 1.60");
    let (few, cheap) = packed(&items(CPU, 32, 2), &kinds("1.70"));
    assert_eq!(few.nodes.len(), 1, "first fit needs one");
    assert_eq!((cheap.nodes.len(), cheap.cost), (16, "1.60".parse().unwrap()));
}

/// First fit makes two machines of the largest kind; a little less in each, and the middle kind will do.
#[test]
fn a_better_division_makes_machines_smaller() {
    let kinds = [kind(times(CPU, 4), "0.40"), kind(times(CPU, 6), "0.60"), kind(times(CPU, 8), "2.00")];
    let (few, _) = packed(&items(CPU, 12, 3), &kinds);
    assert_eq!((few.nodes.len(), few.cost), (2, "1.20".parse().unwrap()));
}

#[test]
fn a_thousand_of_the_same() {
    let kinds = [kind(times(CPU, 7), "0.70"), kind(times(CPU, 50), "4.00"), kind(times(CPU, 60), "6.00")];
    let (few, cheap) = packed(&items(CPU, 1000, 3), &kinds);
    assert_eq!(few.nodes.len(), 17, "16 times 60, and 40");
    assert_eq!((cheap.nodes.len(), cheap.cost), (20, "80".parse().unwrap()));
    assert_eq!(cheap.nodes.iter().map(|node| node.items.len()).max(), Some(50));
}

#[test]
fn the_first_of_equal_kinds_is_bought() {
    let same = kind(times(CPU, 4), "0.40");
    let packing = pack(&items(CPU, 12, 3), &[same.clone(), same.clone(), same]);
    assert!(packing.nodes.iter().all(|node| node.kind == 0));
}
