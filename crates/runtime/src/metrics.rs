// SPDX-License-Identifier: Apache-2.0
//! Counters with fixed label sets: controllers and outcomes, never object names or error texts.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::reconcile::{Category, Truth};

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing left to do.
    Settled,
    /// The plan wants to look again at a certain time.
    Waiting,
    Failed(Category),
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Settled => "Settled",
            Outcome::Waiting => "Waiting",
            Outcome::Failed(category) => category.as_str(),
        }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PassLabels {
    controller: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ObjectLabels {
    controller: &'static str,
    ready: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ControllerLabel {
    controller: &'static str,
}

/// The process's metrics. Controllers may add their own with [`Metrics::register`].
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    passes: Family<PassLabels, Counter>,
    seconds: Family<ControllerLabel, Histogram>,
    leader: Gauge,
    objects: Family<ObjectLabels, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("bivouac");
        let passes = Family::default();
        let seconds: Family<_, _> = Family::new_with_constructor(pass_histogram as fn() -> _);
        let leader = Gauge::default();
        registry.register("passes", "Passes over objects, by controller and outcome", passes.clone());
        registry.register("pass_seconds", "Time a pass took", seconds.clone());
        let objects = Family::<ObjectLabels, Gauge>::default();
        registry.register("objects", "Objects by controller and by what their Ready condition says", objects.clone());
        registry.register("leader", "1 while this process holds the lease", leader.clone());
        Self { registry: Mutex::new(registry), passes, seconds, leader, objects }
    }
}

fn pass_histogram() -> Histogram {
    Histogram::new([0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0])
}

impl Metrics {
    pub fn pass(&self, controller: &'static str, outcome: Outcome, took: Duration) {
        self.passes.get_or_create(&PassLabels { controller, outcome: outcome.as_str() }).inc();
        self.seconds.get_or_create(&ControllerLabel { controller }).observe(took.as_secs_f64());
    }

    /// An object of a controller now says `after` about its readiness, and said `before`.
    pub fn ready(&self, controller: &'static str, before: Option<Truth>, after: Option<Truth>) {
        let gauge =
            |ready: Truth| self.objects.get_or_create_owned(&ObjectLabels { controller, ready: ready.as_str() });
        if before != after {
            if let Some(ready) = before {
                gauge(ready).dec();
            }
            if let Some(ready) = after {
                gauge(ready).inc();
            }
        }
    }

    /// Only a leader may speak for the objects of a controller.
    pub fn silence(&self, controller: &'static str) {
        for ready in [Truth::True, Truth::False, Truth::Unknown] {
            self.objects.remove(&ObjectLabels { controller, ready: ready.as_str() });
        }
    }

    pub fn leading(&self, leading: bool) {
        self.leader.set(i64::from(leading));
    }

    /// Adds a controller's own metrics under the common prefix.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Everything in OpenMetrics text.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        match encode(&mut text, &registry) {
            Ok(()) => text,
            // Writing to a String does not fail; an empty page would hide it if it ever did.
            Err(error) => format!("# metrics could not be written: {error}\n# EOF\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Metrics, Outcome};
    use crate::reconcile::{Category, Truth};
    use std::time::Duration;

    #[test]
    fn what_is_counted_is_shown_with_fixed_labels() {
        let metrics = Metrics::default();
        metrics.pass("tenancy", Outcome::Settled, Duration::from_millis(3));
        metrics.pass("tenancy", Outcome::Failed(Category::Forbidden), Duration::from_millis(3));
        metrics.ready("tenancy", None, Some(Truth::False));
        metrics.ready("tenancy", None, Some(Truth::True));
        metrics.ready("tenancy", Some(Truth::False), Some(Truth::True));
        let text = metrics.render();
        for line in [
            r#"bivouac_passes_total{controller="tenancy",outcome="Settled"} 1"#,
            r#"bivouac_passes_total{controller="tenancy",outcome="Forbidden"} 1"#,
            r#"bivouac_objects{controller="tenancy",ready="True"} 2"#,
            r#"bivouac_objects{controller="tenancy",ready="False"} 0"#,
            "bivouac_leader 0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
        metrics.silence("tenancy");
        assert!(!metrics.render().contains("bivouac_objects{"), "only a leader speaks for its objects");
    }
}
