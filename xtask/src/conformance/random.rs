// SPDX-License-Identifier: Apache-2.0
//! Random sequences on both servers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use bivouac_apiserver::{ApiServer, Settings};
use bivouac_conformance::compare::{differences, signature};
use bivouac_conformance::random::{Grammar, shrink, yaml};
use bivouac_conformance::{Case, Declared, play_all};
use bivouac_testenv::TestCluster;
use kube::Client;

/// How many kinds of differences are made small: enough to read; the rest is counted.
const SHOWN: usize = 25;

const AT_ONCE: usize = 16;

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

    let mut different = Vec::new();
    for (case, (wanted, got)) in cases.iter().zip(wanted.iter().zip(&got)) {
        let texts: Vec<_> = wanted.broken.iter().cloned().chain(differences(wanted, got, declared)).collect();
        if !texts.is_empty() {
            // At once and whole: what does not come again is not seen when it is made small.
            println!("{} differs:\n  {}", case.name, texts.join("\n  "));
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
