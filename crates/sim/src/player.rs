// SPDX-License-Identifier: Apache-2.0
//! Plays the trials of scenarios, one after the other.

use std::{
    collections::BTreeMap,
    io::Write,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use bivouac::simulate::report::{Counts, Failure, Line, Summary};
use bivouac_apiserver::ForkSettings;
use bivouac_sim::{
    Fault, Outcome, Scenario, Trial,
    baseline::Baseline,
    explore::{self, Mode},
    run::{self, Stage},
    shrink::shrink,
    world,
};

use sha2::{Digest, Sha256};

use crate::{
    Options,
    isolate::{Lost, branching, crossroads, isolated},
};

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// More failures of one scenario say nothing new.
const MOST_FAILURES: u64 = 10;

struct Player<'a> {
    options: &'a Options,
    stage: Stage,
    started: Instant,
    told: Instant,
    summary: Summary,
}

pub fn play(options: &Options) -> Result<ExitCode> {
    let paused = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let base = paused.block_on(world::prepare())?;
    // Every run is a process of its own: what is worked out here once need not be worked out in each of them.
    drop(base.fork(ForkSettings { clock: base.clock(), seed: None }));
    let mut failures = 0;
    for name in &options.scenarios {
        let mut scenario = Scenario::find(name)?;
        if let Some(others) = &options.controllers {
            scenario.controllers.clone_from(others);
        }
        let scenario = Arc::new(scenario);
        let controllers = run::controllers(&scenario.controllers)?;
        let now = Instant::now();
        let summary = Summary { scenario: scenario.name.clone(), seed: options.seed, ..Summary::default() };
        let stage = Stage { base: base.clone(), scenario, controllers, aloud: false, crossroads: None };
        let mut player = Player { options, stage, started: now, told: now, summary };
        player.all_seeds()?;
        player.summary.wall_seconds = player.started.elapsed().as_secs_f64();
        failures += player.summary.failures;
        tell(&Line::Done(player.summary));
        if failures > 0 && options.until_failure {
            break;
        }
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(line: &Line) {
    // Whoever started us may be gone; there is nobody left to tell that to.
    let _ = writeln!(std::io::stdout(), "{}", serde_json::to_string(line).unwrap_or_default());
}

impl Player<'_> {
    fn all_seeds(&mut self) -> Result<()> {
        let (at, of) = self.options.shard;
        for seed in self.options.seed..self.options.seed.saturating_add(self.options.seeds) {
            // Exhaustive modes share the trials of a seed, random ones the seeds.
            let random = self.options.mode == Mode::Random;
            if random && self.options.faults.is_none() && seed % of != at {
                continue;
            }
            self.seed(seed)?;
            if self.summary.failures > 0 && (self.options.until_failure || self.summary.failures >= MOST_FAILURES) {
                break;
            }
        }
        Ok(())
    }

    fn seed(&mut self, seed: u64) -> Result<()> {
        let undisturbed = Trial { seed, faults: Vec::new() };
        let stage = Stage { aloud: self.options.calls && self.options.undisturbed, ..self.stage.clone() };
        let baseline = isolated(seed, move || in_virtual_time(&stage, &undisturbed, None))
            .map_err(|lost| anyhow!("{}", in_words(&lost)))
            .context("the undisturbed run came to nothing")?;
        self.count(&baseline.outcome, &[]);
        if !baseline.outcome.violations.is_empty() {
            // With itself wrong there is nothing to measure others by.
            self.failed(seed, &[], &baseline.outcome.violations);
            return Ok(());
        }
        let (at, of) = self.options.shard;
        let mine = |(number, _): &(u64, Trial)| self.options.mode == Mode::Random || number % of == at;
        let trials = (0..).zip(self.trials(seed, &baseline)).skip(usize::try_from(self.options.skip)?);
        let limit = self.options.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let trials: Vec<Trial> = trials.take(limit).filter(mine).map(|(_, trial)| trial).collect();
        let is_shared = self.options.faults.is_none() && !self.options.calls && !self.options.one_by_one;
        if self.options.mode == Mode::Crashes && is_shared {
            self.crashes(seed, &trials, &baseline);
            return Ok(());
        }
        for trial in trials {
            self.stage.aloud = self.options.calls;
            let violations = self.one(&trial, &baseline);
            self.stage.aloud = false;
            if !violations.is_empty() {
                self.shrunk(&trial, &baseline);
                if self.options.until_failure || self.summary.failures >= MOST_FAILURES {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Plays all crashes of a seed. What comes before a crash comes before all later ones too, and is played once.
    fn crashes(&mut self, seed: u64, trials: &[Trial], baseline: &Baseline) {
        let ways = trials.iter().flat_map(|trial| trial.faults.clone()).collect();
        let (stage, straight) =
            (Stage { crossroads: Some(crossroads), ..self.stage.clone() }, Trial { seed, faults: Vec::new() });
        let most = if self.options.until_failure { 1 } else { MOST_FAILURES as usize };
        let (mut wrong, mut played, mut early) = (Vec::new(), 0, BTreeMap::new());
        let run = move || in_virtual_time(&stage, &straight, Some(baseline)).outcome;
        let end = branching(seed, ways, run, |way, end| {
            let right = end.ok().filter(|outcome| outcome.violations.is_empty());
            if right.is_none() {
                wrong.extend(trials.get(way).cloned());
            }
            // Calls that are under way at once do not arrive in the order of their numbers.
            early.insert(way, right);
            while let Some(next) = early.remove(&played) {
                if let (Some(outcome), Some(trial)) = (next, trials.get(played)) {
                    self.count(&outcome, &trial.faults);
                }
                played += 1;
            }
            wrong.len() < most
        });
        for trial in &wrong {
            self.shrunk(trial, baseline);
        }
        // It must have been the undisturbed run once more, and have come by all the places.
        match end {
            _ if !wrong.is_empty() => {}
            Err(lost) => self.failed(seed, &[], &[in_words(&lost)]),
            Ok(outcome) if outcome.transcript_hash != baseline.outcome.transcript_hash => {
                self.failed(seed, &[], &["the same seed gave another transcript".to_owned()]);
            }
            Ok(_) if played != trials.len() => {
                self.failed(seed, &[], &[format!("only {played} of {} crash points were reached", trials.len())]);
            }
            Ok(_) => {}
        }
    }

    fn trials(&self, seed: u64, baseline: &Baseline) -> Vec<Trial> {
        match &self.options.faults {
            _ if self.options.undisturbed => Vec::new(),
            Some(faults) => vec![Trial { seed, faults: faults.clone() }],
            None => explore::trials(self.options.mode, &self.stage.scenario, seed, baseline),
        }
    }

    /// Plays one trial. The answer is what is wrong with it.
    fn one(&mut self, trial: &Trial, baseline: &Baseline) -> Vec<String> {
        let (stage, again) = (self.stage.clone(), trial.clone());
        match isolated(trial.seed, move || in_virtual_time(&stage, &again, Some(baseline)).outcome) {
            Ok(outcome) => {
                self.count(&outcome, &trial.faults);
                outcome.violations
            }
            Err(lost) => vec![in_words(&lost)],
        }
    }

    /// Tells about a run that went wrong, with the fewest faults.
    fn shrunk(&mut self, trial: &Trial, baseline: &Baseline) {
        let least = shrink(trial, |fewer| !self.one(fewer, baseline).is_empty());
        let violations = self.one(&least, baseline);
        self.failed(least.seed, &least.faults, &violations);
    }

    fn failed(&mut self, seed: u64, faults: &[Fault], violations: &[String]) {
        self.summary.failures += 1;
        let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
        let scenario = self.summary.scenario.clone();
        let how = if faults.is_empty() { "--undisturbed".to_owned() } else { format!("--faults {}", faults.join(",")) };
        let others =
            self.options.controllers.as_ref().map(|names| format!(" --controllers {names}")).unwrap_or_default();
        let replay = format!("bivouac simulate {scenario}{others} --seed {seed} {how}");
        tell(&Line::Failure(Failure { scenario, seed, faults, violations: violations.to_vec(), replay }));
    }

    fn count(&mut self, outcome: &Outcome, faults: &[Fault]) {
        self.summary.transcript_hash = chained(&self.summary.transcript_hash, &outcome.transcript_hash);
        let crash = matches!(faults, [Fault::Crash { .. }]);
        self.summary.counts.add(&Counts {
            runs: 1,
            faults: faults.len() as u64,
            crash_points: u64::from(crash),
            steps: outcome.steps,
            virtual_seconds: outcome.virtual_seconds,
            node_days: outcome.node_days,
        });
        if self.told.elapsed() >= TELL_EVERY {
            self.told = Instant::now();
            tell(&Line::Progress(self.summary.counts));
        }
    }
}

fn in_virtual_time(stage: &Stage, trial: &Trial, baseline: Option<&Baseline>) -> Baseline {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(run::run(stage, trial, baseline)),
        Err(error) => {
            let violations = vec![format!("no runtime: {error}")];
            Baseline { outcome: Outcome { violations, ..Outcome::default() }, ..Baseline::default() }
        }
    }
}

/// One hash for all runs so far: any difference in any of them shows in it.
fn chained(before: &str, next: &str) -> String {
    if before.is_empty() {
        return next.to_owned();
    }
    let digest = Sha256::new().chain_update(before).chain_update(next).finalize();
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn in_words(lost: &Lost) -> String {
    match lost {
        Lost::Panicked(words) => format!("it panicked: {words}"),
        Lost::Hung => "it never ends: virtual time stands still while it works".to_owned(),
        Lost::NotStarted(error) => format!("it could not be started: {error}"),
    }
}
