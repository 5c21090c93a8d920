// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask conformance`: the embedded API server beside the real one.

mod faults;
mod random;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use bivouac_apiserver::{ApiServer, Settings};
use bivouac_conformance::{Case, Declared, Report, Transcript, compare, load, play_all};
use bivouac_testenv::{Options as Cluster, TestCluster};

use crate::repo;

const FOLDER: &str = "crates/apiserver/conformance";

/// How many random sequences a full run plays.
const SEQUENCES: usize = 2000;

/// Enough to hide waiting; more makes two cores no faster.
const AT_ONCE: usize = 12;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Print the numbers as one JSON object on the last line
    #[arg(long)]
    json: bool,
    /// Only cases whose `area/name` contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Play on the real server alone, and see whether it does what the cases say
    #[arg(long)]
    real_only: bool,
    /// Compare the real server with itself: a case that differs proves nothing
    #[arg(long, conflicts_with = "real_only")]
    real_twice: bool,
    /// Print what the real server answers in the cases whose `area/name` contains this
    #[arg(long, value_name = "TEXT")]
    show: Option<String>,
    /// So many random sequences of requests; 2000 when all cases run
    #[arg(long, value_name = "N")]
    sequences: Option<usize>,
    /// The number of the first sequence
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Put one fault after the other into the embedded server, and see whether a case notices it
    #[arg(long, conflicts_with_all = ["real_only", "real_twice", "show", "sequences"])]
    faults: bool,
}

impl Options {
    fn sequences(&self) -> usize {
        let all = self.only.is_none() && self.show.is_none() && !self.real_only && !self.real_twice;
        self.sequences.unwrap_or(if all { SEQUENCES } else { 0 })
    }
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let folder = repo::root().join(FOLDER);
    let cases = load(&folder.join("cases"))?;
    let declared = Declared::load(&folder.join("declared.yaml"))?;
    let wanted = options.only.as_ref().or(options.show.as_ref());
    let cases: Vec<&Case> = cases.iter().filter(|case| wanted.is_none_or(|text| case.id().contains(text))).collect();
    if options.sequences.is_some() && options.only.is_none() {
        return only_sequences(options, &declared);
    }
    if cases.is_empty() {
        bail!("no case is named like that");
    }
    let start = Instant::now();
    let runtime = tokio::runtime::Runtime::new()?;
    let mut real = runtime.block_on(play_real(&cases))?;
    println!("{} cases on the real server in {:.1} s", cases.len(), start.elapsed().as_secs_f64());
    if options.show.is_some() {
        real.iter().for_each(show);
    }
    if options.faults {
        let unnoticed = runtime.block_on(faults::run(&cases, &real, &declared))?;
        return Ok(if unnoticed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let mut report = if options.real_only || options.show.is_some() {
        Report { cases: cases.len(), declared: declared.len(), ..Report::default() }
    } else if options.real_twice {
        compare(&real, &runtime.block_on(play_real(&cases))?, &[])
    } else {
        runtime.block_on(beside(&cases, &mut real, &declared))?
    };
    report.texts.iter().for_each(|text| println!("\n{text}"));
    report.sequences = options.sequences();
    report.undeclared += runtime.block_on(random::run(report.sequences, options.seed, &declared))?.len();
    let wrong = surprises(&real);
    Ok(if finish(&report, options)? && wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What CI runs: every case, every fault, and the usual number of random sequences. What the real server itself did not
/// do as a case says, and faults that nobody noticed, count as differences. The second part names what is wrong.
pub fn everything() -> Result<(Report, Vec<String>)> {
    let folder = repo::root().join(FOLDER);
    let cases = load(&folder.join("cases"))?;
    let cases: Vec<&Case> = cases.iter().collect();
    let declared = Declared::load(&folder.join("declared.yaml"))?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut real = runtime.block_on(play_real(&cases))?;
    let mut report = runtime.block_on(beside(&cases, &mut real, &declared))?;
    report.texts.iter().for_each(|text| println!("\n{text}"));
    report.sequences = SEQUENCES;
    let mut wrong = std::mem::take(&mut report.different);
    wrong.extend(surprises(&real));
    wrong.extend(runtime.block_on(faults::run(&cases, &real, &declared))?);
    wrong.extend(runtime.block_on(random::run(SEQUENCES, 1, &declared))?);
    report.undeclared = wrong.len();
    let Report { cases, declared, undeclared, sequences, .. } = &report;
    println!("{cases} cases, {sequences} sequences, {declared} declared differences, {undeclared} undeclared");
    Ok((report, wrong))
}

/// Plays the cases on the embedded server and compares. What differs, or surprised on the real server, is played once
/// more on both: the real server publishes definitions and rights with a delay, and what goes away was that. `real` then
/// holds the second play.
async fn beside(cases: &[&Case], real: &mut [Transcript], declared: &[Declared]) -> Result<Report> {
    let start = Instant::now();
    let mut ours = play_ours(cases).await?;
    println!("{} cases on the embedded server in {:.1} s", cases.len(), start.elapsed().as_secs_f64());
    let mut suspects = compare(real, &ours, declared).different;
    suspects.extend(real.iter().filter(|one| one.surprised()).map(|one| one.id.clone()));
    let again: Vec<&Case> = cases.iter().copied().filter(|case| suspects.contains(&case.id())).collect();
    if !again.is_empty() && again.len() <= AT_ONCE {
        println!("played again: {}", again.iter().map(|case| case.id()).collect::<Vec<_>>().join(", "));
        replace(real, play_real(&again).await?);
        replace(&mut ours, play_ours(&again).await?);
    }
    Ok(compare(real, &ours, declared))
}

/// Puts each second transcript in the place of the first one of its case.
fn replace(transcripts: &mut [Transcript], second: Vec<Transcript>) {
    for new in second {
        if let Some(old) = transcripts.iter_mut().find(|old| old.id == new.id) {
            *old = new;
        }
    }
}

fn only_sequences(options: &Options, declared: &[Declared]) -> Result<ExitCode> {
    let sequences = options.sequences();
    let undeclared = tokio::runtime::Runtime::new()?.block_on(random::run(sequences, options.seed, declared))?.len();
    let report = Report { sequences, undeclared, declared: declared.len(), ..Report::default() };
    Ok(if finish(&report, options)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the numbers, and says whether they are good.
fn finish(report: &Report, options: &Options) -> Result<bool> {
    let Report { cases, declared, undeclared, sequences, .. } = report;
    println!("{cases} cases, {sequences} sequences, {declared} declared differences, {undeclared} undeclared");
    if options.json {
        println!("{}", serde_json::to_string(&report)?);
    }
    Ok(*undeclared == 0)
}

/// Most cases want a server that nobody else writes to; some want the controllers.
async fn play_real(cases: &[&Case]) -> Result<Vec<Transcript>> {
    let (lively, quiet): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.controllers);
    let mut transcripts = Vec::new();
    if !quiet.is_empty() {
        let cluster = TestCluster::start(quiet_cluster()).await?;
        transcripts.extend(play_all(&client(&cluster).await?, &quiet, AT_ONCE).await);
    }
    if !lively.is_empty() {
        let cluster = TestCluster::start(without(&["kube-scheduler", "kwok"])).await?;
        transcripts.extend(play_all(&client(&cluster).await?, &lively, AT_ONCE).await);
    }
    Ok(transcripts)
}

/// Nobody but us writes there.
fn quiet_cluster() -> Cluster {
    without(&["kube-controller-manager", "kube-scheduler", "kwok"])
}

fn without(names: &[&str]) -> Cluster {
    Cluster { without: names.iter().map(|name| (*name).to_owned()).collect(), ..Cluster::default() }
}

/// A client that shows every answer: the usual one asks again when the server says that it is busy.
async fn client(cluster: &TestCluster) -> Result<kube::Client> {
    let kubeconfig = kube::config::Kubeconfig::read_from(cluster.kubeconfig())?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
    config.default_retry = false;
    Ok(kube::Client::try_from(config)?)
}

/// The same on the embedded server, in this process.
async fn play_ours(cases: &[&Case]) -> Result<Vec<Transcript>> {
    let (lively, quiet): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.controllers);
    let mut transcripts = Vec::new();
    for (cases, controllers) in [(quiet, false), (lively, true)] {
        if cases.is_empty() {
            continue;
        }
        let server = ApiServer::start(Settings::default()).await?;
        let client = kube::Client::new(server.clone(), "default");
        let play = play_all(&client, &cases, AT_ONCE);
        transcripts.extend(tokio::select! {
            played = play => played,
            () = server.collect(), if controllers => bail!("the server stopped collecting garbage"),
        });
    }
    Ok(transcripts)
}

/// A case that the real server does not follow tests nothing.
fn surprises(transcripts: &[Transcript]) -> Vec<String> {
    for transcript in transcripts {
        for (step, record) in transcript.records.iter().enumerate() {
            if let Some(surprise) = &record.surprise {
                println!("{} step {}: {}\n  {surprise}", transcript.id, step + 1, record.request);
            }
        }
        if let Some(broken) = &transcript.broken {
            println!("{}: {broken}", transcript.id);
        }
    }
    let surprised = transcripts.iter().filter(|one| one.surprised());
    surprised.map(|one| format!("{} on the real server", one.id)).collect()
}

fn show(transcript: &Transcript) {
    println!("\n=== {}", transcript.id);
    for (step, record) in transcript.records.iter().enumerate() {
        print!("--- step {}\n{}", step + 1, compare::show(record));
    }
}
