// SPDX-License-Identifier: Apache-2.0
//! `bivouac operator`: the controllers, against any Kubernetes.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, anyhow};
use bivouac_core::clock::SystemClock;
use bivouac_runtime::{
    client, lease, process,
    registry::{self, Registration},
    telemetry,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::{ControllerOptions, GangThen, LogFormat, OperatorOptions};

/// Signals this close together are one.
const ONE_WISH: Duration = Duration::from_millis(200);

/// Every controller of the suite, in the order people read about them.
pub fn controllers(options: &ControllerOptions) -> Vec<Registration> {
    let ControllerOptions { tenancy, miniclusters } = options;
    let tenancy = bivouac_tenancy::Settings {
        managed_by: tenancy.tenancy_managed_by.clone(),
        part_of: tenancy.tenancy_part_of.clone(),
        ..bivouac_tenancy::Settings::default()
    };
    let miniclusters = bivouac_miniclusters::Settings {
        gang: miniclusters.gang,
        gang_hold: miniclusters.gang_hold.unsigned_abs(),
        gang_then: match miniclusters.gang_then {
            GangThen::Wait => bivouac_miniclusters::GangThen::Wait,
            GangThen::Release => bivouac_miniclusters::GangThen::Release,
        },
        label_all_pods: miniclusters.label_all_pods,
        view_by_image: miniclusters.view_by_image,
        ..bivouac_miniclusters::Settings::default()
    };
    vec![bivouac_tenancy::registration(tenancy), bivouac_miniclusters::registration(miniclusters)]
}

#[tokio::main]
pub async fn run(options: OperatorOptions) -> Result<()> {
    let format = match options.log.log_format {
        LogFormat::Text => telemetry::LogFormat::Text,
        LogFormat::Json => telemetry::LogFormat::Json,
    };
    telemetry::start(format, &options.log.log_filter).map_err(|error| anyhow!(error))?;
    let stop = stop_on_signals()?;
    let controllers = registry::select(&controllers(&options.each), &options.controllers)?;
    let config = client::config(options.kubeconfig.as_deref()).await?;
    let client = client::connect(config, concat!("bivouac/", env!("CARGO_PKG_VERSION")))?;
    let identity = options.election.identity.unwrap_or_else(host_name);
    let settings = lease::Settings::new(options.election.lease_namespace, options.election.lease_name, &identity);
    let options = process::Options {
        controllers,
        admin: Some(options.admin_address),
        lease: options.election.leader_elect.then_some(settings),
        identity,
    };
    process::operate(client, Arc::new(SystemClock), options, stop).await?;
    tracing::info!("stopped");
    Ok(())
}

/// The first signal stops in order; the second ends the process at once.
pub(crate) fn stop_on_signals() -> Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let stop = CancellationToken::new();
    let token = stop.clone();
    tokio::spawn(async move {
        let mut signalled = async || tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} };
        signalled().await;
        token.cancel();
        // `timeout` and some terminals deliver one wish twice.
        let _ = tokio::time::timeout(ONE_WISH, async {
            loop {
                signalled().await
            }
        })
        .await;
        signalled().await;
        eprintln!("bivouac: second signal, ending at once");
        std::process::exit(130);
    });
    Ok(stop)
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // Two processes on one host must not take each other for themselves.
    format!("{}-{}", if name.trim().is_empty() { "host" } else { name.trim() }, std::process::id())
}
