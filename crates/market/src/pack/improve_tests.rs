// SPDX-License-Identifier: Apache-2.0
use bivouac_core::Money;
use proptest::prelude::*;

use super::super::{Amounts, Item, Kind, KindSet};
use super::*;

const STEPS: [fn(&mut Improver<'_>); 5] = [
    |all| all.each(Improver::drain),
    |all| all.each(Improver::split),
    |all| all.rebuild_pairs(),
    |all| all.each(Improver::give_up),
    |all| all.rebuild_groups(),
];

/// Items by what they need of the processor and the memory; kinds by what they hold of both, and the price.
fn problem(items: &[(u64, u64, KindSet)], kinds: &[(u64, u64, i64)]) -> Problem {
    let amounts = |cpu, memory| Amounts { cpu, memory, ..Amounts::default() };
    let item = |(cpu, memory, allowed): &(u64, u64, KindSet)| {
        let needs = amounts(*cpu, *memory);
        Item { needs, allowed: allowed.clone() }
    };
    let kind = |(cpu, memory, price): &(u64, u64, i64)| {
        let price = Money::from_micros(*price);
        Kind { holds: amounts(*cpu, *memory), price }
    };
    Problem::new(&items.iter().map(item).collect::<Vec<_>>(), &kinds.iter().map(kind).collect::<Vec<_>>())
}

/// What the step makes of these nodes.
fn after(step: usize, problem: &Problem, parts: &[Vec<Place>], most_nodes: usize) -> Vec<Filled> {
    let nodes = parts.iter().map(|items| Filled::new(problem, items.clone(), 0).unwrap()).collect();
    let mut work = Work::at_most(10_000_000);
    let mut all = Improver { problem, nodes, most_nodes, work: &mut work, round: 1 };
    STEPS[step](&mut all);
    all.nodes
}

fn sizes(nodes: &[Filled]) -> Vec<(usize, u64)> {
    let mut sizes: Vec<_> = nodes.iter().map(|node| (node.items.len(), node.load.price)).collect();
    sizes.sort_unstable();
    sizes
}

/// So many items of one unit each.
fn ones(count: usize, kinds: usize) -> Vec<(u64, u64, KindSet)> {
    vec![(1, 0, KindSet::all(kinds)); count]
}

#[test]
fn a_node_is_drained_into_room_elsewhere() {
    // Three have room for one each, and without three of its four the fourth may be small.
    let problem = problem(&ones(14, 2), &[(1, 0, 10), (4, 0, 30)]);
    let parts = [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8], vec![9, 10, 11, 12]];
    assert_eq!(sizes(&after(0, &problem, &parts, 4)), [(1, 10), (4, 30), (4, 30), (4, 30)]);
    // With one or two less, no node would be cheaper: all stay.
    let parts = [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8, 9], vec![10, 11, 12, 13]];
    assert_eq!(sizes(&after(0, &problem, &parts, 4)), [(3, 30), (3, 30), (4, 30), (4, 30)]);
}

#[test]
fn a_node_is_split_if_there_may_be_one_more() {
    let problem = problem(&ones(4, 2), &[(2, 0, 10), (4, 0, 30)]);
    let parts = [(0..4).collect()];
    assert_eq!(sizes(&after(1, &problem, &parts, 2)), [(2, 10), (2, 10)]);
    assert_eq!(sizes(&after(1, &problem, &parts, 1)), [(4, 30)]);
}

#[test]
fn two_nodes_are_divided_anew() {
    let problem = problem(&ones(6, 3), &[(1, 0, 9), (3, 0, 10), (5, 0, 20)]);
    let parts = [vec![0], vec![1, 2, 3, 4, 5]];
    assert_eq!(sizes(&after(2, &problem, &parts, 2)), [(3, 10), (3, 10)]);
    let parts = [vec![0], vec![1, 2]];
    assert_eq!(sizes(&after(2, &problem, &parts, 2)), [(3, 10)], "one will do");
}

#[test]
fn a_node_is_given_up_where_others_grow_for_less() {
    // Both others must grow to take one each, and that costs less than the node.
    let problem = problem(&ones(6, 3), &[(2, 0, 20), (3, 0, 25), (4, 0, 90)]);
    let parts = [vec![0, 1], vec![2, 3], vec![4, 5]];
    assert_eq!(sizes(&after(3, &problem, &parts, 3)), [(3, 25), (3, 25)]);
    let problem = self::problem(&ones(6, 3), &[(2, 0, 20), (3, 0, 30), (4, 0, 90)]);
    assert_eq!(after(3, &problem, &parts, 3).len(), 3, "for the same it is not worth it");
}

#[test]
fn three_nodes_are_divided_anew_at_once() {
    // 8 and 2, 7 and 3, 6 and 4 would be right. No two of the nodes can do better on their own.
    let items = [8, 7, 6, 4, 3, 2].map(|size| (size, 0, KindSet::all(2)));
    let problem = problem(&items, &[(10, 0, 10), (12, 0, 19)]);
    let parts = [vec![0, 3], vec![1, 5], vec![2, 4]];
    assert_eq!(value(&after(2, &problem, &parts, 3)), (39, 3));
    assert_eq!(value(&after(4, &problem, &parts, 3)), (30, 3));
}

proptest! {
    /// On its own, a step may find nothing, but it never does harm.
    #[test]
    fn no_step_makes_it_worse(
        items in prop::collection::vec((0..9_u64, 0..9_u64, prop::collection::vec(0..5_usize, 1..5)), 1..25),
        kinds in prop::collection::vec((0..30_u64, 0..30_u64, 1..40_i64), 5),
        groups in prop::collection::vec(0..8_usize, 25),
        spare in 0..3_usize,
        step in 0..STEPS.len(),
    ) {
        let items = items.into_iter().map(|(cpu, memory, kinds)| (cpu, memory, kinds.into_iter().collect()));
        let items: Vec<_> = items.collect();
        let problem = problem(&items, &kinds);
        let mut parts: Vec<Vec<Place>> = vec![Vec::new(); 8];
        for place in 0..problem.len() {
            let with: Vec<Place> = parts[groups[place]].iter().copied().chain([place]).collect();
            match Filled::new(&problem, with.clone(), 0) {
                Some(_) => parts[groups[place]] = with,
                None => parts.push(vec![place]),
            }
        }
        parts.retain(|part| !part.is_empty());
        let before: Vec<Filled> = parts.iter().map(|items| Filled::new(&problem, items.clone(), 0).unwrap()).collect();
        let nodes = after(step, &problem, &parts, parts.len() + spare);
        prop_assert!(value(&nodes).0 <= value(&before).0, "{:?} and then {:?}", sizes(&before), sizes(&nodes));
        prop_assert!(nodes.len() <= parts.len() + spare);
        let mut seen: Vec<Place> = nodes.iter().flat_map(|node| &node.items).copied().collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..problem.len()).collect::<Vec<_>>());
        for node in &nodes {
            let again = Filled::new(&problem, node.items.clone(), 0).unwrap();
            prop_assert_eq!((again.load.kind, again.load.price), (node.load.kind, node.load.price));
        }
    }
}
