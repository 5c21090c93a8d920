// SPDX-License-Identifier: Apache-2.0
//! How often clouds are asked, how they answer and how long it takes, under the names the original operator has.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::fault::Operation;

/// Shared by all clouds of a process.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<Answered, Counter>,
    seconds: Family<Asked, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    provider: &'static str,
    operation: &'static str,
    /// The HTTP status, or `none`.
    status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    provider: &'static str,
    operation: &'static str,
}

const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

// === impl Metrics ===

impl Default for Metrics {
    fn default() -> Self {
        Self { requests: Family::default(), seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)) }
    }
}

impl Metrics {
    pub fn register(&self, registry: &mut Registry) {
        let requests = self.requests.clone();
        registry.register("tgp_operator_provider_requests", "Requests to clouds by operation and status", requests);
        let seconds = self.seconds.clone();
        registry.register("tgp_operator_provider_request_duration_seconds", "How long clouds take to answer", seconds);
    }

    pub(crate) fn count(&self, provider: &'static str, operation: Operation, status: &str, took: Duration) {
        let operation = operation.name();
        self.requests.get_or_create(&Answered { provider, operation, status: status.to_owned() }).inc();
        self.seconds.get_or_create(&Asked { provider, operation }).observe(took.as_secs_f64());
    }
}
