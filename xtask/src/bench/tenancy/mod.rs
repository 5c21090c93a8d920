// SPDX-License-Identifier: Apache-2.0
//! Three hundred Workspaces, against the floor of a bare client that writes the same objects.

mod floor;
mod load;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bivouac_api::tenant::Workspace;
use bivouac_testenv::{Options, TestCluster};

use super::{
    Bench, Report, audit,
    operator::{self, Operator, Usage},
};

const WORKSPACES: usize = 300;
const ROUNDS: usize = 3;
/// The Go operator's figures for the same load on a machine of two cores.
const ORIGINAL_REQUESTS: f64 = 14.0;
const ORIGINAL_RSS_MB: f64 = 72.0;

pub const BENCH: Bench = Bench { name: "tenancy", about: "bring 300 Workspaces to their fixed point", run };

#[derive(Debug, clap::Parser)]
struct Arguments {
    /// How long to watch the settled operator
    #[arg(long, default_value_t = 300)]
    steady_seconds: u64,
}

/// What one run of the operator showed.
struct Run {
    seconds: f64,
    usage: Usage,
}

#[tokio::main]
async fn run(arguments: &[String]) -> Result<Report> {
    let arguments: Arguments = clap::Parser::parse_from(std::iter::once(&"tenancy".to_owned()).chain(arguments));
    let binary = operator::build()?;
    let (mut floors, mut runs) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let floor = floor::measure(&cluster().await?, WORKSPACES).await?;
        eprintln!("round {round}: floor {floor:.2} s");
        // The long watch is needed once.
        let steady = if round == 1 { Duration::from_secs(arguments.steady_seconds) } else { Duration::ZERO };
        let run = measure(&cluster().await?, &binary, steady).await?;
        eprintln!("round {round}: operator {:.2} s, {:.1} MB", run.seconds, run.usage.rss_mb);
        floors.push(floor);
        runs.push(run);
    }
    report(&floors, &runs, arguments.steady_seconds)
}

async fn cluster() -> Result<TestCluster> {
    let cluster = TestCluster::start(Options { audit: true, ..Options::default() }).await?;
    cluster.install_crds(&bivouac_api::crds()).await?;
    operator::wait_until_served::<Workspace>(&cluster.client()).await?;
    Ok(cluster)
}

async fn measure(cluster: &TestCluster, binary: &std::path::Path, steady: Duration) -> Result<Run> {
    let log = cluster.audit_log().context("the cluster keeps no audit log")?;
    let operator = Operator::start(binary, cluster.kubeconfig(), "first").await?;
    let before = audit::count(log)?;
    let started = Instant::now();
    load::create(&cluster.client(), WORKSPACES).await?;
    load::all_ready(&cluster.client(), WORKSPACES).await?;
    let seconds = started.elapsed().as_secs_f64();
    let usage = operator.end(binary, cluster, &before, steady).await?;
    Ok(Run { seconds, usage })
}

fn report(floors: &[f64], runs: &[Run], steady_seconds: u64) -> Result<Report> {
    let best = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
    let floor = best(&mut floors.iter().copied());
    let seconds = best(&mut runs.iter().map(|run| run.seconds));
    let first = runs.first().context("no run")?;
    ensure!(first.usage.requests.writes() > 0, "the audit log shows no write of the operator");
    let per_object = |count: usize| count as f64 / WORKSPACES as f64;
    let per_minute = |count: usize| count as f64 * 60.0 / steady_seconds.max(1) as f64;
    let rss = runs.iter().map(|run| run.usage.rss_mb).fold(0.0, f64::max);
    let list = |values: Vec<f64>| values.iter().map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(", ");

    let mut report = Report::default();
    report.add("objects", WORKSPACES as f64, "", "Workspaces, created by 8 requests at a time");
    report.add("seconds", seconds, "s", format!("best of {}", list(runs.iter().map(|run| run.seconds).collect())));
    report.add("floor_seconds", floor, "s", format!("best of {}", list(floors.to_vec())));
    report.add("ratio", seconds / floor, "x", "the bar is 1.5, the goal 1.3");
    report.add("writes_per_object", per_object(first.usage.requests.writes()), "", "6 children, 1 status, 1 event");
    report.add(
        "reads_per_object",
        per_object(first.usage.requests.reads()),
        "",
        format!("all requests of the original: {ORIGINAL_REQUESTS}"),
    );
    report.add(
        "steady_writes_per_minute",
        per_minute(first.usage.steady.writes()),
        "",
        format!("over {steady_seconds} s; the bar is 0"),
    );
    report.add(
        "steady_reads_per_minute",
        per_minute(first.usage.steady.reads()),
        "",
        "one discovery in ten minutes is allowed",
    );
    report.add(
        "restart_writes",
        first.usage.restart.writes() as f64,
        "",
        "by a second start over the settled world; the bar is 0",
    );
    report.add("rss_mb", rss, "MB", format!("largest of {ROUNDS}; half the original's is {}", ORIGINAL_RSS_MB / 2.0));
    Ok(report)
}
