// SPDX-License-Identifier: Apache-2.0
//! A hundred MiniClusters of size 4, and one of size 1,000, with the real controller-manager, scheduler and KWOK.

mod bare;
mod load;

use std::{
    fmt,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    Bench, Report, audit,
    operator::{self, Operator, Usage},
};
use load::{Load, Shape};
use tokio::sync::oneshot;

const MANY: Shape = Shape { clusters: 100, size: 4 };
const LARGE: Shape = Shape { clusters: 1, size: 1_000 };
/// The Go operator's figures for the same load on a machine of two cores, and what its API server could create there.
const ORIGINAL_PODS_SECONDS: f64 = 13.9;
const ORIGINAL_CREATES_PER_S: f64 = 2_060.0;
const ORIGINAL_REQUESTS: f64 = 14.3;
const ORIGINAL_RSS_MB: f64 = 58.0;
/// What the Go operator makes for each: a ConfigMap, a Service and a Job.
const ORIGINAL_CHILDREN: usize = 3;
/// ConfigMap, Secret, Service and Job.
const CHILDREN: usize = 4;

pub const BENCH: Bench =
    Bench { name: "minicluster", about: "run 100 MiniClusters of size 4, and one of size 1,000", run };

#[derive(Debug, clap::Parser)]
struct Arguments {
    /// How often to measure; single rounds differ by a fifth on a machine that others use, too
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// How the MiniClusters come
    #[arg(long, value_enum, default_value_t = Load::Apply)]
    load: Load,
    /// Another build of the operator, to compare with: it is measured in each round, too
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
    /// How long to watch the settled operator
    #[arg(long, default_value_t = 120)]
    steady_seconds: u64,
}

/// What one run of the operator showed.
struct Run {
    /// Creates per second of a bare client, before and after.
    floors: Vec<f64>,
    /// From the first MiniCluster until the last was accepted.
    load_seconds: f64,
    pods_seconds: f64,
    done_seconds: f64,
    usage: Usage,
    labels: load::Labels,
}

/// A run, and the same right after it without any operator.
struct Round {
    run: Run,
    bare_seconds: f64,
}

impl Round {
    /// What an operator would show that costs nothing.
    fn bare_times_faster(&self) -> f64 {
        original_ratio() / (self.bare_seconds / floor(MANY, CHILDREN, self.run.creates_per_s()))
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { floors, load_seconds, pods_seconds, done_seconds, usage, .. } = self;
        let floors: Vec<_> = floors.iter().map(|floor| format!("{floor:.0}")).collect();
        write!(f, "{:.2} times faster, {} creates/s, ", self.times_faster(), floors.join(" "))?;
        write!(f, "loaded {load_seconds:.2} s, pods {pods_seconds:.2} s, done {done_seconds:.2} s, ")?;
        let each = usage.requests.all() as f64 / MANY.clusters as f64;
        write!(f, "{each:.1} requests each, {:.1} MB", usage.rss_mb)
    }
}

impl Run {
    /// The best of them: the machine is not equally fast all the time, and what slows a floor flatters us.
    fn creates_per_s(&self) -> f64 {
        self.floors.iter().copied().fold(0.0, f64::max)
    }

    fn ratio(&self, shape: Shape) -> f64 {
        self.pods_seconds / floor(shape, CHILDREN, self.creates_per_s())
    }

    fn times_faster(&self) -> f64 {
        original_ratio() / self.ratio(MANY)
    }
}

fn original_ratio() -> f64 {
    ORIGINAL_PODS_SECONDS / floor(MANY, ORIGINAL_CHILDREN, ORIGINAL_CREATES_PER_S)
}

#[tokio::main]
async fn run(arguments: &[String]) -> Result<Report> {
    let arguments: Arguments = clap::Parser::parse_from(std::iter::once(&"minicluster".to_owned()).chain(arguments));
    let binary = operator::build()?;
    let mut rounds = Vec::new();
    for round in 1..=arguments.rounds {
        // The long watch is needed once.
        let steady = if round == 1 { Duration::from_secs(arguments.steady_seconds) } else { Duration::ZERO };
        let run = measure(&binary, MANY, arguments.load, steady).await?;
        eprintln!("round {round}: {run}");
        let bare_seconds = bare::measure(MANY, arguments.load).await?;
        eprintln!("  without an operator: pods {bare_seconds:.2} s");
        rounds.push(Round { run, bare_seconds });
        if let Some(other) = &arguments.beside {
            eprintln!("  beside: {}", measure(other, MANY, arguments.load, Duration::ZERO).await?);
        }
    }
    let large = measure(&binary, LARGE, arguments.load, Duration::ZERO).await?;
    report(&rounds, &large, arguments.steady_seconds)
}

async fn measure(binary: &std::path::Path, shape: Shape, load: Load, steady: Duration) -> Result<Run> {
    let cluster = load::cluster().await?;
    let client = cluster.client();
    // A large one would be over before all its pods exist: it gets nodes only then, and labels are asked for.
    let is_large = shape.clusters == 1;
    if !is_large {
        load::nodes(&client).await?;
        load::nodes_are_known(&client).await?;
    }
    let mut floors = vec![load::floor(&cluster, "1").await?, load::floor(&cluster, "2").await?];
    let log = cluster.audit_log().context("the cluster keeps no audit log")?;
    let operator = Operator::start(binary, cluster.kubeconfig(), "first").await?;
    let before = audit::count(log)?;
    let (tell, all_exist) = oneshot::channel();
    let labels = tokio::spawn(load::pods(client.clone(), shape, tell));
    let first = tokio::spawn(load::first_seen(client.clone()));
    load.bring(&cluster, shape).await?;
    let loaded = Instant::now();
    let started = first.await??;
    let load_seconds = (loaded - started).as_secs_f64();
    let Ok(all_exist) = all_exist.await else {
        labels.await??;
        bail!("all are finished, and not all pods were seen");
    };
    let pods_seconds = (all_exist - started).as_secs_f64();
    if is_large {
        load::select_by_rank(&client).await?;
        load::nodes(&client).await?;
    }
    let labels = labels.await??;
    let done_seconds = started.elapsed().as_secs_f64();
    let usage = operator.end(binary, &cluster, &before, steady).await?;
    floors.extend([load::floor(&cluster, "3").await?, load::floor(&cluster, "4").await?]);
    Ok(Run { floors, load_seconds, pods_seconds, done_seconds, usage, labels })
}

/// How long a bare client would need for as many objects.
fn floor(shape: Shape, children: usize, creates_per_s: f64) -> f64 {
    (shape.clusters * (1 + children + shape.size)) as f64 / creates_per_s
}

fn report(rounds: &[Round], large: &Run, steady_seconds: u64) -> Result<Report> {
    let runs = || rounds.iter().map(|round| &round.run);
    // As the original's figures were taken.
    let median = &middle(rounds, |round| round.run.times_faster()).context("no run")?.run;
    let bare = middle(rounds, Round::bare_times_faster).context("no run")?;
    let first = runs().next().context("no run")?;
    ensure!(first.usage.requests.writes() > 0, "the audit log shows no write of the operator");
    ensure!(runs().chain([large]).all(|run| run.labels.wrong == 0), "a pod has the job-index of another");
    let each = |count: usize| count as f64 / MANY.clusters as f64;
    let per_minute = |count: usize| count as f64 * 60.0 / steady_seconds.max(1) as f64;
    let rss = runs().map(|run| run.usage.rss_mb).fold(0.0, f64::max);
    let verbs: Vec<_> =
        first.usage.requests.0.iter().map(|(verb, count)| format!("{:.2} {verb}", each(*count))).collect();

    let mut report = Report::default();
    report.add("objects", MANY.clusters as f64, "", "MiniClusters of size 4");
    report.add("load_seconds", median.load_seconds, "s", "until the last MiniCluster was accepted");
    report.add("pods_seconds", median.pods_seconds, "s", format!("until all pods exist; median of {}", rounds.len()));
    report.add("seconds", median.done_seconds, "s", "until all are finished; KWOK runs a pod for a second");
    report.add(
        "floor_seconds",
        floor(MANY, CHILDREN, median.creates_per_s()),
        "s",
        format!("as many objects at {:.0} creates/s, 32 in flight", median.creates_per_s()),
    );
    report.add("ratio", median.ratio(MANY), "x", "pods_seconds / floor_seconds");
    report.add("original_ratio", original_ratio(), "x", "the same of the original");
    let each_round = |figure: fn(&Round) -> f64| -> String {
        rounds.iter().map(|round| format!("{:.2}", figure(round))).collect::<Vec<_>>().join(", ")
    };
    let note = format!("the bar is 3; the rounds: {}", each_round(|round| round.run.times_faster()));
    report.add("times_faster", median.times_faster(), "x", note);
    report.add("bare_seconds", bare.bare_seconds, "s", "until all pods of the same Jobs exist without an operator");
    let note = format!("the same without an operator; the rounds: {}", each_round(Round::bare_times_faster));
    report.add("bare_times_faster", bare.bare_times_faster(), "x", note);
    let over = bare.bare_times_faster() / median.times_faster();
    report.add("over_bare", over, "x", "bare_times_faster / times_faster");
    report.add(
        "requests_per_object",
        each(first.usage.requests.all()),
        "",
        format!("{}; the bar is 9, the original's {ORIGINAL_REQUESTS}", verbs.join(", ")),
    );
    report.add("writes_per_object", each(first.usage.requests.writes()), "", "events included");
    report.add("reads_per_object", each(first.usage.requests.reads()), "", "");
    report.add("steady_writes_per_minute", per_minute(first.usage.steady.writes()), "", "the bar is 0");
    report.add(
        "steady_reads_per_minute",
        per_minute(first.usage.steady.reads()),
        "",
        "one discovery in ten minutes is allowed",
    );
    report.add("restart_writes", first.usage.restart.writes() as f64, "", "the bar is 0");
    report.add("rss_mb", rss, "MB", format!("the bar is half the original's: {}", ORIGINAL_RSS_MB / 2.0));
    report.add("large.pods_seconds", large.pods_seconds, "s", "one MiniCluster of size 1,000");
    report.add("large.ratio", large.ratio(LARGE), "x", "against its floor");
    report.add("large.requests", large.usage.requests.all() as f64, "", "once a Service selects by job-index");
    report.add("large.rss_mb", large.usage.rss_mb, "MB", "");
    report.add("large.labels_right", large.labels.right as f64, "", "pods whose job-index is their completion index");
    Ok(report)
}

/// The one whose figure is the median.
fn middle(rounds: &[Round], figure: fn(&Round) -> f64) -> Option<&Round> {
    let mut sorted: Vec<&Round> = rounds.iter().collect();
    sorted.sort_by(|one, other| figure(one).total_cmp(&figure(other)));
    sorted.get(rounds.len() / 2).copied()
}
