// SPDX-License-Identifier: Apache-2.0
//! Random sequences on both servers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use bivouac_apiserver::{ApiServer, Settings};
use bivouac_conformance::compare::{differences, signature};
use bivouac_conformance::random::{Grammar, shrink, yaml};
use bivouac_conformance::{Case, Declared, Transcript, play_all};
use bivouac_testenv::TestCluster;
use kube::Client;

/// How many kinds of differences are made small: enough to read; the rest is counted.
const SHOWN: usize = 25;

const AT_ONCE: usize = 16;

/// What is wrong with ours is wrong every time. A real server under load answers late or differently once; a sequence
/// that agrees in one of so many replays, alone, says nothing about ours.
const AGAIN: usize = 3;
/// More of them are a difference that comes and goes.
const UNSTEADY: usize = 3;

/// The sequences that differ. The first of them are made small and printed.
pub async fn run(count: usize, seed: u64, declared: &[Declared]) -> Result<Vec<String>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let grammar = Grammar::load()?;
    let cluster = TestCluster::start(super::quiet_cluster()).await?;
    let real = super::client(&cluster).await?;
    let ours = Client::new(ApiServer::start(Settings::default()).await?, "default");
    let group = grammar.set_stage(&real).await?;
    grammar.set_stage(&ours).await?;

    let cases: Vec<Case> = (seed..).take(count).map(|seed| grammar.sequence(seed, &group)).collect();
    let cases: Vec<&Case> = cases.iter().collect();
    let start = Instant::now();
    let wanted = play_all(&real, &cases, AT_ONCE).await;
    let requests: usize = wanted.iter().map(|one| one.records.len()).sum();
    println!("{count} sequences, {requests} requests on the real server in {:.1} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let got = play_all(&ours, &cases, AT_ONCE).await;
    println!("{count} sequences on the embedded server in {:.1} s", start.elapsed().as_secs_f64());

    let pairs = cases.iter().zip(wanted.iter().zip(&got));
    let (mut different, mut unsteady) = (Vec::new(), 0);
    for (case, (wanted, got)) in pairs.filter(|(_, (wanted, got))| differ(wanted, got, declared)) {
        println!("{} differs:", case.name);
        wanted.broken.iter().chain(&differences(wanted, got, declared)).for_each(|text| println!("  {text}"));
        if unsteady < UNSTEADY && !differs_again(&real, &ours, case, declared).await {
            unsteady += 1;
            println!("  but not when it was played again");
        } else {
            different.push((*case, signature(wanted, got)));
        }
    }
    let mut kinds = BTreeMap::<&str, Vec<&Case>>::new();
    different.iter().for_each(|(case, kind)| kinds.entry(kind).or_default().push(case));
    let mut kinds: Vec<_> = kinds.into_values().collect();
    kinds.sort_by_key(|cases| Reverse(cases.len()));
    for cases in kinds.iter().take(SHOWN) {
        let Some(case) = cases.first() else { continue };
        println!("\n# {} like {}", cases.len(), case.name);
        match shrink(&real, &ours, declared, case).await {
            Some(small) => println!("{}\n{}", yaml(&small.case, &small.real.records), small.texts.join("\n")),
            None => println!("it differed once and not again"),
        }
    }
    for cases in kinds.iter().skip(SHOWN) {
        println!("# and {} like {}", cases.len(), cases.first().map_or("", |case| &case.name));
    }
    Ok(different.iter().map(|(case, _)| case.id()).collect())
}

fn differ(wanted: &Transcript, got: &Transcript, declared: &[Declared]) -> bool {
    wanted.broken.is_some() || !differences(wanted, got, declared).is_empty()
}

async fn differs_again(real: &Client, ours: &Client, case: &Case, declared: &[Declared]) -> bool {
    for _ in 0..AGAIN {
        let (wanted, got) = (play_all(real, &[case], 1).await, play_all(ours, &[case], 1).await);
        if wanted.iter().zip(&got).all(|(wanted, got)| !differ(wanted, got, declared)) {
            return false;
        }
    }
    true
}
