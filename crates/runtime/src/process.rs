// SPDX-License-Identifier: Apache-2.0
//! One process: start in order, lead, stop in order.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bivouac_core::clock::Clock;
use kube::{Client, runtime::watcher};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    admin,
    capabilities::Capabilities,
    fence::Fence,
    lease::{self, Elector, Meanwhile, Settings},
    metrics::Metrics,
    readiness::Readiness,
    reconcile::plain,
    registry::Registration,
};

/// How long running passes may take to finish after a stop.
const DRAIN: Duration = Duration::from_secs(10);
/// How long giving back the lease may take.
const RELEASE: Duration = Duration::from_secs(5);
/// How long an API server may be away at start before we give up.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a controller gets from the process. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    /// Fenced: it writes only while this process leads.
    pub client: Client,
    pub clock: Arc<dyn Clock>,
    pub metrics: Arc<Metrics>,
    pub readiness: Readiness,
    pub capabilities: Capabilities,
    /// How to list and watch on this server.
    pub watching: watcher::Config,
    /// The name of this process, for events.
    pub identity: String,
    /// Ends the controllers of this term.
    pub stop: CancellationToken,
}

/// How to run.
#[derive(Debug)]
pub struct Options {
    pub controllers: Vec<Registration>,
    /// Where the admin server listens; `None` for none.
    pub admin: Option<SocketAddr>,
    /// `None` runs without leader election: for a process that is alone by construction.
    pub lease: Option<Settings>,
    pub identity: String,
}

/// Why the process did not start, in words for the person who started it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the cluster cannot be reached: {0}\nCheck that it runs and that the kubeconfig names the right server.")]
    Unreachable(String),
    #[error("the cluster refuses us: {0}\nCheck the credentials, and the rights that `bivouac rbac` prints.")]
    Refused(String),
    #[error(
        "the lease {namespace}/{name} is held by {holder}: another operator writes the same objects.\n\
         Stop it first (scale its Deployment to 0), then start again."
    )]
    Rival { namespace: &'static str, name: &'static str, holder: String },
    #[error("cannot listen on {address}: {source}\nChoose another address with --admin-address.")]
    Listen { address: SocketAddr, source: std::io::Error },
}

/// Runs until `stop` ends, then stops in order: passes, lease, admin server.
pub async fn operate(
    client: Client,
    clock: Arc<dyn Clock>,
    options: Options,
    stop: CancellationToken,
) -> Result<(), StartError> {
    let metrics = Arc::new(Metrics::default());
    let readiness = Readiness::default();
    let serving = CancellationToken::new();
    let starting = readiness.wait_for("start");
    if let Some(address) = options.admin {
        let listener = TcpListener::bind(address).await.map_err(|source| StartError::Listen { address, source })?;
        tracing::info!(%address, "admin server listens");
        tokio::spawn(admin::serve(listener, admin::routes(readiness.clone(), metrics.clone()), serving.clone()));
    }
    let watching = greet(&client).await?;
    refuse_rivals(&client, &options.controllers, &*clock).await?;
    let capabilities = Capabilities::new(options.controllers.iter().flat_map(|one| (one.apis)()));
    discover(&client, &capabilities).await?;
    tokio::spawn(stop.clone().run_until_cancelled_owned(capabilities.clone().follow(client.clone())));
    starting.done();

    let fence = if options.lease.is_some() { Fence::shut() } else { Fence::open() };
    let runtime = Runtime {
        client: fence.guard(client.clone()),
        clock: clock.clone(),
        metrics,
        readiness,
        capabilities,
        watching,
        identity: options.identity,
        stop: stop.clone(),
    };
    match options.lease {
        Some(settings) => {
            lead(&runtime, &options.controllers, Elector::new(client, settings, clock, fence), &stop).await
        }
        None => term(&runtime, &options.controllers, std::future::pending(), &stop).await,
    }
    serving.cancel();
    Ok(())
}

/// Campaigns, leads a term, and campaigns again when the lease was lost.
async fn lead(runtime: &Runtime, controllers: &[Registration], mut elector: Elector, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        let mut campaign = Some(runtime.readiness.wait_for("leader election"));
        let meanwhile = |news| match news {
            // A standby is a healthy replica: it must not look unready, or no rollout would end.
            Meanwhile::HeldBy(_) => campaign = None,
            Meanwhile::Trouble(error) => {
                campaign.get_or_insert_with(|| runtime.readiness.wait_for("leader election")).set(error);
            }
        };
        let won = stop.run_until_cancelled(elector.acquire(meanwhile)).await;
        drop(campaign);
        if won.is_none() {
            break;
        }
        tracing::info!(identity = runtime.identity, "this process leads");
        runtime.metrics.leading(true);
        term(runtime, controllers, elector.hold(), stop).await;
        runtime.metrics.leading(false);
    }
    if tokio::time::timeout(RELEASE, elector.release()).await.is_err() {
        tracing::warn!("the lease was not given back in time; a successor waits until it expires");
    }
}

/// Runs all controllers until leadership or the process ends, then lets running passes finish.
async fn term(
    runtime: &Runtime,
    controllers: &[Registration],
    leading: impl Future<Output = ()>,
    stop: &CancellationToken,
) {
    let end = stop.child_token();
    let mut running = JoinSet::new();
    for controller in controllers {
        let runtime = Runtime { stop: end.clone(), ..runtime.clone() };
        running.spawn((controller.run)(runtime));
    }
    tokio::select! {
        () = leading => tracing::warn!("this process no longer leads; its controllers stop"),
        () = stop.cancelled() => tracing::info!("stopping: running passes may finish"),
    }
    end.cancel();
    let drained = tokio::time::timeout(DRAIN, async { while running.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!(seconds = DRAIN.as_secs(), "passes still running were given up");
    }
}

/// The first contact: who is there, and how its lists want to be asked for.
async fn greet(client: &Client) -> Result<watcher::Config, StartError> {
    let version = patiently(|| client.apiserver_version()).await?;
    tracing::info!(version = version.git_version, "connected to the API server");
    let minor: u32 = version.minor.trim_end_matches('+').parse().unwrap_or_default();
    let config = watcher::Config::default();
    Ok(if minor >= 34 { config.streaming_lists() } else { config })
}

async fn discover(client: &Client, capabilities: &Capabilities) -> Result<(), StartError> {
    patiently(|| capabilities.refresh(client)).await
}

async fn refuse_rivals(client: &Client, controllers: &[Registration], clock: &dyn Clock) -> Result<(), StartError> {
    for (namespace, name) in controllers.iter().flat_map(|one| one.rivals) {
        if let Some(holder) = patiently(|| lease::current_holder(client, namespace, name, clock)).await? {
            return Err(StartError::Rival { namespace, name, holder });
        }
    }
    Ok(())
}

/// Retries what time may heal; a refusal is told at once.
async fn patiently<T, F: Future<Output = Result<T, kube::Error>>>(ask: impl Fn() -> F) -> Result<T, StartError> {
    let give_up = tokio::time::Instant::now() + PATIENCE;
    loop {
        let error = match tokio::time::timeout(Duration::from_secs(10), ask()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => {
                return Err(StartError::Refused(status.message));
            }
            Ok(Err(error)) => plain(&error),
            Err(_) => "no answer within 10 seconds".to_owned(),
        };
        if tokio::time::Instant::now() >= give_up {
            return Err(StartError::Unreachable(error));
        }
        tracing::warn!(error, "the API server does not answer yet, trying again");
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}
