// SPDX-License-Identifier: Apache-2.0
//! For the same inputs the simulated controllers come to the same results as the real kube-controller-manager.
//!
//! Each document in `manifests/` is one case. `CASES=word` plays only those whose name has the word in it.

use std::{collections::BTreeMap, panic, path::Path};

use crate::differ::{
    case::{self, Case},
    normal,
    play::{Played, play},
    world::{PARTS, Real, World},
};
use crate::stage;

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/manifests");
    let asked = std::env::var("CASES").unwrap_or_default();
    case::read(&folder).unwrap().into_iter().filter(|case| case.name.contains(&asked)).collect()
}

fn namespace(case: &Case) -> String {
    format!("case-{}", case.name)
}

#[test]
fn results_equal_those_of_the_real_controllers() {
    let cases = cases();
    let real = play_real(&cases);
    let mut failed = Vec::new();
    for (case, real) in cases.iter().zip(real) {
        let ours = panic::catch_unwind(|| play_ours(case));
        let found = match (real, ours) {
            (Some(real), Ok(ours)) => compare(&real, &ours),
            (real, ours) => vec![format!("played in the real world: {}, in ours: {}", real.is_some(), ours.is_ok())],
        };
        if !found.is_empty() {
            failed.push(format!("{}:\n  {}", case.name, found.join("\n  ")));
        }
    }
    println!("{} of {} cases agree", cases.len() - failed.len(), cases.len());
    assert!(failed.is_empty(), "{} of {} cases differ:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

#[test]
fn there_are_enough_cases() {
    if std::env::var_os("CASES").is_some() {
        return;
    }
    let cases = cases();
    let mut names: Vec<_> = cases.iter().map(|case| &case.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "every case has a name of its own");
    let mut features: BTreeMap<&str, usize> = BTreeMap::new();
    cases.iter().flat_map(|case| &case.features).for_each(|feature| *features.entry(feature).or_default() += 1);
    let rare: Vec<_> = features.iter().filter(|(_, count)| **count < 2).collect();
    assert!(rare.is_empty(), "each feature needs two cases: {rare:?}");
    assert!(cases.len() >= 60, "{} cases", cases.len());
}

/// All at once, each in its own namespace of one cluster. What cannot be played is nothing.
fn play_real(cases: &[Case]) -> Vec<Option<Played>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (_cluster, real) = Real::start().await;
        let plays = cases.iter().cloned().map(|case| {
            let world = World::Real(real.clone());
            tokio::spawn(async move { play(&case, &world, &namespace(&case)).await })
        });
        let plays: Vec<_> = plays.collect();
        let mut played = Vec::new();
        for play in plays {
            played.push(play.await.ok());
        }
        played
    })
}

fn play_ours(case: &Case) -> Played {
    let mut played = None;
    stage::run(async {
        let world = World::Ours(Box::new(stage::Stage::with(PARTS).await));
        played = Some(play(case, &world, &namespace(case)).await);
    });
    played.unwrap()
}

fn compare(real: &Played, ours: &Played) -> Vec<String> {
    let mut found = Vec::new();
    for (at, (real, ours)) in real.states.iter().zip(&ours.states).enumerate() {
        normal::differences(&format!("after step {at}: "), real, ours, &mut found);
    }
    normal::differences("events", &real.events, &ours.events, &mut found);
    found
}
