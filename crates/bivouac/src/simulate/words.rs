// SPDX-License-Identifier: Apache-2.0
//! What people see of a simulation.

use std::{
    fmt::Write as _,
    io::Write as _,
    time::{Duration, Instant},
};

use super::{
    gather::{Gathered, Listed},
    report::{Counts, Failure},
};

/// The line that says how it goes, on a terminal only.
pub struct Progress {
    visible: bool,
    shown: Option<Instant>,
}

impl Progress {
    pub fn new(visible: bool) -> Self {
        Self { visible, shown: None }
    }

    /// At most ten times a second.
    pub fn show(&mut self, gathered: &Gathered) {
        let soon = self.shown.is_some_and(|shown| shown.elapsed() < Duration::from_millis(100));
        if !self.visible || soon {
            return;
        }
        self.shown = Some(Instant::now());
        eprint!("\r\x1b[2K{}", line(&gathered.total(), gathered.started.elapsed()));
        let _ = std::io::stderr().flush();
    }

    pub fn clear(&mut self) {
        if self.visible && self.shown.take().is_some() {
            eprint!("\r\x1b[2K");
        }
    }
}

fn line(counts: &Counts, wall: Duration) -> String {
    let seconds = wall.as_secs_f64().max(0.001);
    let mut line = format!(
        "{} runs, {:.0} runs/s, {} faults tried, {} virtual time, {:.0} virtual seconds/s",
        counts.runs,
        counts.runs as f64 / seconds,
        counts.faults,
        span(counts.virtual_seconds),
        counts.virtual_seconds / seconds,
    );
    if counts.node_days > 0.0 {
        let _ = write!(line, ", {:.0} node-days/s", counts.node_days / seconds);
    }
    line
}

fn span(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3_600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

pub fn failure(failure: &Failure) -> String {
    let mut text = format!("WRONG  {} with seed {}\n", failure.scenario, failure.seed);
    for violation in &failure.violations {
        let _ = writeln!(text, "       {violation}");
    }
    let _ = writeln!(text, "       Play it again: {}", failure.replay);
    text
}

pub fn summary(gathered: &Gathered) -> String {
    let mut text = String::new();
    for (name, story) in &gathered.stories {
        let verdict = if story.violations.is_empty() { "ok   " } else { "WRONG" };
        let Counts { runs, crash_points, steps, virtual_seconds, .. } = story.counts;
        let _ = write!(text, "{verdict}  {name}: {runs} runs, {steps} steps, {}", span(virtual_seconds));
        if crash_points > 0 {
            let _ = write!(text, ", {crash_points} crash points");
        }
        let hashes: Vec<&str> = story.hashes.values().map(String::as_str).filter(|hash| !hash.is_empty()).collect();
        let _ = writeln!(text, ", transcript {}", hashes.join("-"));
    }
    let _ = writeln!(
        text,
        "{} in {:.1} s",
        line(&gathered.total(), gathered.started.elapsed()),
        gathered.started.elapsed().as_secs_f64()
    );
    text
}

pub fn list(known: &[Listed]) -> String {
    let width = known.iter().map(|one| one.scenario.len()).max().unwrap_or_default();
    known.iter().fold(String::new(), |mut text, one| {
        let _ = writeln!(text, "{:width$}  {}", one.scenario, one.about);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::report::Line;

    fn gathered() -> Gathered {
        let mut gathered = Gathered::new(vec!["a/b".to_owned()], 7, 2);
        for (job, line) in [
            (
                0,
                r#"{"progress":{"runs":3,"faults":2,"crash_points":0,"steps":9,"virtual_seconds":60.0,"node_days":0.0}}"#,
            ),
            (
                0,
                r#"{"done":{"scenario":"a/b","seed":7,"transcript_hash":"ab","failures":0,"wall_seconds":1.5,
                "counts":{"runs":4,"faults":3,"crash_points":2,"steps":12,"virtual_seconds":7200.0,"node_days":0.5}}}"#,
            ),
            (
                1,
                r#"{"failure":{"scenario":"a/b","seed":8,"faults":["cut@3"],"violations":["G1: an orphan"],"replay":"bivouac simulate a/b"}}"#,
            ),
            (
                1,
                r#"{"progress":{"runs":1,"faults":0,"crash_points":0,"steps":3,"virtual_seconds":60.0,"node_days":0.0}}"#,
            ),
        ] {
            gathered.take(job, serde_json::from_str::<Line>(line).unwrap());
        }
        gathered
    }

    #[test]
    fn processes_add_up() {
        let gathered = gathered();
        let total = gathered.total();
        assert_eq!((total.runs, total.faults, total.crash_points), (5, 3, 2));
        assert!(gathered.failed());
        let json = gathered.json();
        for key in [
            "scenario",
            "seed",
            "transcript_hash",
            "steps",
            "crash_points",
            "virtual_seconds",
            "wall_seconds",
            "violations",
        ] {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert_eq!(json.get("transcript_hash").unwrap(), "ab");
    }

    #[test]
    fn people_read_what_is_wrong_and_how_to_see_it() {
        let text = summary(&gathered());
        assert!(text.starts_with("WRONG  a/b: 4 runs, 12 steps, 2.0 h, 2 crash points, transcript ab\n"), "{text}");
        let words = failure(&Failure {
            scenario: "a/b".into(),
            seed: 3,
            faults: Vec::new(),
            violations: vec!["G1: an orphan".into()],
            replay: "bivouac simulate a/b".into(),
        });
        assert_eq!(words, "WRONG  a/b with seed 3\n       G1: an orphan\n       Play it again: bivouac simulate a/b\n");
    }
}
