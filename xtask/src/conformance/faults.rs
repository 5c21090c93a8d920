// SPDX-License-Identifier: Apache-2.0
//! Whether the cases notice when the embedded server is wrong.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bivouac_apiserver::fault::{self, Fault};
use bivouac_apiserver::{ApiServer, Settings};
use bivouac_conformance::compare::differences;
use bivouac_conformance::play::play_within;
use bivouac_conformance::{Case, Declared, Transcript};
use futures::StreamExt;

/// What a fault keeps from happening is not waited for as long as the real server.
const PATIENCE: Duration = Duration::from_secs(3);

struct Suite<'a> {
    wanted: BTreeMap<String, &'a Transcript>,
    declared: &'a [Declared],
}

/// The faults that no case notices.
pub async fn run(cases: &[&Case], real: &[Transcript], declared: &[Declared]) -> Result<Vec<String>> {
    let wanted = real.iter().map(|transcript| (transcript.id.clone(), transcript)).collect();
    let suite = Suite { wanted, declared };
    let start = Instant::now();
    // A case that differs anyway notices nothing.
    let played = suite.play(cases, false).await?;
    let different: Vec<_> = played.iter().filter(|one| !suite.agrees(one)).map(|one| one.id.as_str()).collect();
    let sound: Vec<&Case> = cases.iter().copied().filter(|case| !different.contains(&case.id().as_str())).collect();
    println!(
        "{} of {} cases agree without a fault, in {:.1} s",
        sound.len(),
        cases.len(),
        start.elapsed().as_secs_f64()
    );
    let start = Instant::now();
    let mut unnoticed = Vec::new();
    for fault in Fault::ALL {
        let noticed = suite.notice(*fault, &sound).await?;
        if noticed.is_none() {
            unnoticed.push(format!("fault {fault:?} not noticed"));
        }
        println!("{fault:?} ({}): {}", fault.text(), noticed.as_deref().unwrap_or("NOT NOTICED"));
    }
    let count = Fault::ALL.len();
    println!("{} of {count} faults noticed, in {:.1} s", count - unnoticed.len(), start.elapsed().as_secs_f64());
    Ok(unnoticed)
}

impl Suite<'_> {
    /// The first case that differs with the fault and does not differ without it.
    async fn notice(&self, fault: Fault, cases: &[&Case]) -> Result<Option<String>> {
        let (near, far): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.area == fault.area());
        for mut cases in [near, far] {
            loop {
                fault::switch(Some(fault));
                let played = self.play(&cases, true).await;
                fault::switch(None);
                let Some(different) = played?.pop().filter(|one| !self.agrees(one)) else { break };
                let (found, rest): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.id() == different.id);
                if self.play(&found, false).await?.iter().all(|one| self.agrees(one)) {
                    return Ok(Some(different.id));
                }
                cases = rest;
            }
        }
        Ok(None)
    }

    fn agrees(&self, got: &Transcript) -> bool {
        self.wanted.get(&got.id).is_some_and(|wanted| differences(wanted, got, self.declared).is_empty())
    }

    /// Plays cases on new servers; if wanted, up to the first that differs.
    async fn play(&self, cases: &[&Case], until_different: bool) -> Result<Vec<Transcript>> {
        let (lively, quiet): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.controllers);
        let mut transcripts = Vec::new();
        for (cases, controllers) in [(quiet, false), (lively, true)] {
            let server = ApiServer::start(Settings::default()).await?;
            let client = kube::Client::new(server.clone(), "default");
            let plays = futures::stream::iter(&cases).map(|case| play_within(&client, case, PATIENCE));
            let mut plays = std::pin::pin!(plays.buffered(super::AT_ONCE));
            let mut collect = std::pin::pin!(server.collect());
            loop {
                let played = tokio::select! {
                    played = plays.next() => played,
                    () = &mut collect, if controllers => bail!("the server stopped collecting garbage"),
                };
                let Some(played) = played else { break };
                let ends = until_different && !self.agrees(&played);
                transcripts.push(played);
                if ends {
                    return Ok(transcripts);
                }
            }
        }
        Ok(transcripts)
    }
}
