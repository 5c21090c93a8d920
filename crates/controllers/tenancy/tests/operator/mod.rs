// SPDX-License-Identifier: Apache-2.0
//! The operator as it runs in production, inside the test process.
//!
//! Every test starts its own, and all of one cluster share a lease: whoever leads works for all.

use std::{path::Path, sync::Arc, thread::JoinHandle, time::Duration};

use bivouac_core::clock::SystemClock;
use bivouac_runtime::{client, lease, process};
use kube::Client;
use tokio_util::sync::CancellationToken;

/// The name of its requests in an audit log, and of its lease in the namespace `default`.
pub const AGENT: &str = "bivouac-under-test";

pub struct Operator {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Operator {
    pub fn start(kubeconfig: &Path) -> Self {
        Self::start_with(kubeconfig, |client| client)
    }

    /// Its requests go through what `wrap` makes. On a thread of its own, so that dropping it can wait.
    pub fn start_with(kubeconfig: &Path, wrap: fn(Client) -> Client) -> Self {
        let stop = CancellationToken::new();
        let (token, kubeconfig) = (stop.clone(), kubeconfig.to_owned());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                // Shown for failed tests only; the second start in one process changes nothing.
                let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_test_writer().try_init();
                let config = client::config(Some(&kubeconfig)).await.unwrap();
                let client = wrap(client::connect(config, AGENT).unwrap());
                process::operate(client, Arc::new(SystemClock), options(), token).await.unwrap();
            });
        });
        Self { stop, thread: Some(thread) }
    }
}

fn options() -> process::Options {
    let identity = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    let lease = lease::Settings {
        // A successor should not make a test wait.
        retry: Duration::from_millis(300),
        ..lease::Settings::new("default", AGENT, &identity)
    };
    let controllers = vec![bivouac_tenancy::registration(bivouac_tenancy::Settings::default())];
    process::Options { controllers, admin: None, lease: Some(lease), identity }
}

/// Stops in order; the lease is free afterwards.
impl Drop for Operator {
    fn drop(&mut self) {
        self.stop.cancel();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))), "the operator panicked");
    }
}
