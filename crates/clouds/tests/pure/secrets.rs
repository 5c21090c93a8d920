// SPDX-License-Identifier: Apache-2.0
//! Nothing that a whole run says has a credential in it.

use std::io::Write;
use std::sync::{Arc, Mutex};

use bivouac_clouds::kit::{self, Stage, behaviours, is_free_of};
use bivouac_clouds::metrics::Metrics;
use bivouac_clouds::registry::{ALL, Entry};
use prometheus_client::registry::Registry;
use tracing_subscriber::fmt::MakeWriter;

/// Everything that is logged, down to the last trace.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[test]
fn no_log_error_or_metric_has_a_credential() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(log.clone())
        .with_max_level(tracing::Level::TRACE)
        .finish();
    let metrics = Metrics::default();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut said = tracing::subscriber::with_default(subscriber, || whole_run(&metrics));
    let mut shown = String::new();
    prometheus_client::encoding::text::encode(&mut shown, &registry).unwrap();
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for entry in ALL {
        assert!(shown.contains(&format!("provider=\"{}\"", entry.name)), "nothing is counted for {}", entry.name);
        assert!(logged.contains(&format!("cloud=\"{}\"", entry.name)), "nothing is logged for {}", entry.name);
    }
    said.extend([shown, logged]);
    for secret in ALL.iter().map(kit::credentials).flat_map(|all| all.secrets().cloned().collect::<Vec<_>>()) {
        for text in &said {
            assert!(is_free_of(text, secret.reveal()), "{secret:?} is in: {text}");
        }
    }
}

/// All behaviours of all clouds. What comes out of them is what went wrong, in words.
fn whole_run(metrics: &Metrics) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let mut said = Vec::new();
    for entry in ALL {
        for behaviour in behaviours() {
            let verdict = runtime.block_on(async { (behaviour.run)(&counted(entry, metrics)).await });
            said.push(format!("{verdict:?}"));
        }
    }
    said
}

fn counted(entry: &Entry, metrics: &Metrics) -> Stage {
    let credentials = kit::credentials(entry);
    let server = entry.server(&credentials).unwrap();
    let line = server.line().with_metrics(metrics.clone());
    let cloud = entry.open(&credentials, &line).unwrap();
    Stage { cloud, server, credentials }
}
