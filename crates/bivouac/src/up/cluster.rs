// SPDX-License-Identifier: Apache-2.0
//! What runs: the API server on the disk, its collector, the simulated nodes and workloads, the controllers; started and
//! stopped in order.

use std::{io, sync::Arc, time::Duration};

use anyhow::{Context, Result, anyhow};
use bivouac_apiserver::{
    ApiServer, Settings, User, serve,
    store::{Failure, Limits, OpenError, Store},
};
use bivouac_core::clock::SystemClock;
use bivouac_runtime::{
    process,
    process::StartError,
    readiness::Readiness,
    registry::{self, Registration},
};
use bivouac_simulator::Part;
use futures::FutureExt;
use kube::Client;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    data_dir::{self, DataDir, STORE},
    identity::Identity,
    manifests::{ACCOUNT, NAMESPACE},
    scene::{self, Scene},
};
use crate::{cli::ControllerOptions, operator};

/// The log is read at every start, so it stays shorter than in a server that runs for months.
const LOG_BYTES: u64 = 8 << 20;
const POLL: Duration = Duration::from_millis(5);

pub struct Cluster {
    server: ApiServer,
    /// Ends the controllers, and after them the rest.
    controllers_stop: CancellationToken,
    server_stop: CancellationToken,
    controllers: Option<JoinHandle<Result<(), StartError>>>,
    readiness: watch::Receiver<Option<Readiness>>,
    readiness_sender: watch::Sender<Option<Readiness>>,
    serving: JoinHandle<io::Result<()>>,
}

impl Cluster {
    /// Opens what the directory holds and serves it.
    pub async fn start(
        dir: &DataDir,
        listener: TcpListener,
        identity: &Identity,
        scene: &watch::Sender<Scene>,
    ) -> Result<Self> {
        let place = dir.file(STORE);
        let limits = Limits { log_bytes: LOG_BYTES, ..Limits::default() };
        // Secrets are in there, whoever may look into the directory around it.
        dir.make_private_folder(STORE)?;
        let store = tokio::task::spawn_blocking(move || Store::open(place, limits)).await?.map_err(explain)?;
        let settings = Settings {
            store: store.clone(),
            trusts_all: false,
            tokens: [(identity.token.clone(), User::admin())].into(),
            advertised: Some(listener.local_addr()?),
            logs: Some(bivouac_simulator::logs()),
            ..Settings::default()
        };
        let server = ApiServer::start(settings).await;
        let server = server.map_err(|status| refusal(&store).unwrap_or_else(|| anyhow!("{}", status.message)))?;
        let server_stop = CancellationToken::new();
        let until = server_stop.clone().cancelled_owned();
        let serving = tokio::spawn(serve(server.clone(), listener, Some(identity.tls()?), until));
        let (readiness_sender, readiness) = watch::channel(None);
        let cluster = Self {
            server,
            controllers_stop: CancellationToken::new(),
            server_stop,
            controllers: None,
            readiness,
            readiness_sender,
            serving,
        };
        cluster.beside(cluster.server.clone(), |server| async move { server.collect().await });
        let parts = [Part::ALL, Part::LAPTOP].concat();
        let simulated = bivouac_simulator::Cluster::start(&cluster.server, &bivouac_simulator::Settings { parts });
        cluster.beside(simulated, |simulated| simulated.run(CancellationToken::new()));
        cluster.beside((cluster.server.clone(), scene.clone()), |(server, scene)| tell_failure(server, scene));
        Ok(cluster)
    }

    /// Runs something for as long as the server runs.
    fn beside<T, F: Future<Output = ()> + Send + 'static>(&self, with: T, run: impl FnOnce(T) -> F) {
        tokio::spawn(self.server_stop.clone().run_until_cancelled_owned(run(with)));
    }

    /// The server as its administrator sees it.
    pub fn client(&self) -> Client {
        Client::new(self.server.speaking_as(User::admin()), "default")
    }

    /// Starts the controllers, with the rights they have in a real cluster and no more; and the eyes of the view.
    pub fn operate(&mut self, scene: &watch::Sender<Scene>) {
        self.beside((self.client(), scene.clone()), |(client, scene)| scene::follow(client, scene));
        let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{NAMESPACE}"), "system:authenticated"];
        let account = User {
            name: format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}"),
            groups: groups.map(str::to_owned).to_vec(),
            ..User::default()
        };
        let client = Client::new(self.server.speaking_as(account), "default");
        let controllers = every_controller().into_iter().map(|one| watched(one, &self.readiness_sender)).collect();
        // Alone by construction: the data directory is locked.
        let options = process::Options { controllers, admin: None, lease: None, identity: "bivouac-up".to_owned() };
        let stop = self.controllers_stop.clone();
        self.controllers = Some(tokio::spawn(process::operate(client, Arc::new(SystemClock), options, stop)));
    }

    /// Waits until every controller has seen its world; the scene tells what is missing.
    pub async fn controllers_ready(&mut self, scene: &watch::Sender<Scene>) -> Result<()> {
        let mut begun = self.readiness.clone();
        tokio::select! {
            ended = self.ended() => return ended,
            begun = begun.wait_for(Option::is_some) => drop(begun?),
        }
        loop {
            let waiting = begun.borrow().as_ref().map(Readiness::waiting).unwrap_or_default();
            let done = waiting.is_empty();
            scene.send_if_modified(|scene| std::mem::replace(&mut scene.waiting, waiting.clone()) != waiting);
            if done {
                return Ok(());
            }
            tokio::select! {
                ended = self.ended() => return ended,
                () = tokio::time::sleep(POLL) => {}
            }
        }
    }

    /// What the disk has refused, if it has.
    pub fn refusal(&self) -> Option<anyhow::Error> {
        refusal(self.server.store())
    }

    /// Returns when the controllers have come to an end that nobody asked for.
    pub async fn ended(&mut self) -> Result<()> {
        let Some(controllers) = &mut self.controllers else { return std::future::pending().await };
        let outcome = controllers.await;
        self.controllers = None;
        outcome?.context("the controllers did not start")?;
        Err(anyhow!("the controllers ended by themselves; the log says why"))
    }

    /// Running passes finish, then the server closes.
    pub async fn stop(mut self) {
        self.controllers_stop.cancel();
        if let Some(controllers) = self.controllers.take() {
            let _ = controllers.await;
        }
        self.server_stop.cancel();
        let _ = self.serving.await;
    }
}

fn every_controller() -> Vec<Registration> {
    let mut options = ControllerOptions::default();
    // Nobody adds nodes to a laptop by itself, so half a cluster would only hold room that others could use.
    options.miniclusters.gang = true;
    registry::select(&operator::controllers(&options), "*").unwrap_or_default()
}

/// The same controller; when it has begun, it hands out the list of what the process waits for.
fn watched(one: Registration, begun: &watch::Sender<Option<Readiness>>) -> Registration {
    let (run, begun) = (one.run.clone(), begun.clone());
    let run = Arc::new(move |runtime: bivouac_runtime::Runtime| -> futures::future::BoxFuture<'static, ()> {
        let (run, begun) = (run.clone(), begun.clone());
        Box::pin(async move {
            let readiness = runtime.readiness.clone();
            let mut running = run(runtime);
            // Its own waiting is on the list only after its first step.
            let first = futures::poll!(&mut running);
            begun.send_replace(Some(readiness));
            if first.is_pending() {
                running.await;
            }
        })
    });
    Registration { run, ..one }
}

/// A disk that refuses a write is told at once. The server goes on to be read.
async fn tell_failure(server: ApiServer, scene: watch::Sender<Scene>) {
    if let Err(failure) = server.store().reached(u64::MAX).await {
        tracing::error!(%failure, "the disk refused a write");
        let why = match data_dir::trouble(&failure.path, again(&failure)) {
            data_dir::Trouble::Full { .. } => "The disk is full".to_owned(),
            _ => format!("{} cannot be written ({})", failure.path.display(), failure.source),
        };
        let text = format!(
            "{why}: objects can be read, but not changed. Nothing is lost. Make room, then stop this and start it again."
        );
        scene.send_modify(|scene| scene.trouble = Some(text));
    }
}

fn refusal(store: &Store) -> Option<anyhow::Error> {
    // No store ever gets there; one that has failed says so at once.
    let failure = store.reached(u64::MAX).now_or_never()?.err()?;
    Some(data_dir::trouble(&failure.path, again(&failure)).into())
}

/// The same error once more: they cannot be copied.
fn again(failure: &Failure) -> io::Error {
    failure.source.raw_os_error().map_or_else(|| failure.source.kind().into(), io::Error::from_raw_os_error)
}

/// The store's own words are good; a full disk has ours.
fn explain(error: OpenError) -> anyhow::Error {
    match error {
        OpenError::Io { path, source } => data_dir::trouble(&path, source).into(),
        other => other.into(),
    }
}
