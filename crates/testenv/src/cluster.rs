// SPDX-License-Identifier: Apache-2.0
//! A cluster as a test sees it.

mod own;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use bivouac_core::names;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::config::{AuthInfo, Kubeconfig};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::components::{Component, ensure};
use crate::crds;
use crate::identity;
use crate::pki::Pki;
use crate::shared;
use crate::supervisor::Ready;
use own::Own;

/// Names a kubeconfig: [`TestCluster::shared`] then attaches to that cluster and starts none.
pub const KUBECONFIG_ENV: &str = "BIVOUAC_TEST_KUBECONFIG";

const DELETE_LIMIT: Duration = Duration::from_secs(5);

/// What an own cluster has besides the usual.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Servers to leave out, like `kwok`.
    pub without: Vec<String>,
    /// Whether to write an audit log, of everybody but the control plane itself.
    pub audit: bool,
    /// More flags for kube-apiserver.
    pub apiserver_args: Vec<String>,
    /// Whether Kueue runs, too, with its webhooks. Its first build takes three minutes more.
    pub kueue: bool,
    /// Whether all controllers of the controller-manager share one account that may do everything, instead of having
    /// an account and rights each: so the originals were measured.
    pub one_account: bool,
    /// How long KWOK runs the pods of Jobs before they succeed; else no longer than it takes to say so.
    pub job_pods_run: Duration,
}

/// A running control plane and an administrator's client for it.
pub struct TestCluster {
    ready: Ready,
    config: Kubeconfig,
    client: Client,
    hold: Hold,
}

/// What keeps the cluster running.
#[derive(Debug)]
enum Hold {
    /// Somebody else does.
    Named,
    /// Our lock, seen by the supervisor.
    Shared { _user: File },
    /// Our end of the supervisor's standard input.
    Own(Own),
}

/// A namespace that is deleted when it is dropped. Nobody waits until it is gone.
#[derive(Debug)]
pub struct TestNamespace {
    name: String,
    config: Kubeconfig,
}

/// Somebody with exactly one identity.
pub struct Identity {
    pub client: Client,
    kubeconfig: PathBuf,
    _dir: tempfile::TempDir,
}

// === impl TestCluster ===

impl TestCluster {
    /// The cluster that `BIVOUAC_TEST_KUBECONFIG` names; else one that all tests of this checkout share.
    ///
    /// Call it in every test: a client belongs to the runtime it was made in.
    pub async fn shared() -> Result<Self> {
        if let Some(path) = std::env::var_os(KUBECONFIG_ENV).filter(|path| !path.is_empty()) {
            return Self::named(Path::new(&path)).await;
        }
        let (ready, user) = blocking(shared::attach).await?;
        Self::connect(ready, Hold::Shared { _user: user }).await
    }

    /// A cluster of one's own, stopped when it is dropped.
    pub async fn start(options: Options) -> Result<Self> {
        let (ready, own) = blocking(move || Own::start(&options)).await?;
        Self::connect(ready, Hold::Own(own)).await
    }

    async fn named(kubeconfig: &Path) -> Result<Self> {
        let kubeconfig = kubeconfig.canonicalize().with_context(|| format!("{}", kubeconfig.display()))?;
        let config = identity::read(&kubeconfig)?;
        let server = config.clusters.iter().find_map(|named| named.cluster.as_ref()?.server.clone());
        let dir = kubeconfig.parent().unwrap_or(Path::new("/")).to_owned();
        let audit_log = Some(dir.join("audit.log")).filter(|log| log.is_file());
        let server = server.with_context(|| format!("{} names no server", kubeconfig.display()))?;
        Self::connect(Ready { kubeconfig, dir, server, audit_log, pids: Default::default() }, Hold::Named).await
    }

    async fn connect(ready: Ready, hold: Hold) -> Result<Self> {
        let config = identity::read(&ready.kubeconfig)?;
        let client = identity::client(config.clone()).await?;
        Ok(Self { ready, config, client, hold })
    }

    /// With all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.ready.kubeconfig
    }

    pub fn server(&self) -> &str {
        &self.ready.server
    }

    /// One JSON event per line and request.
    pub fn audit_log(&self) -> Option<&Path> {
        self.ready.audit_log.as_deref()
    }

    /// Creates a namespace with a name that no other test has.
    pub async fn namespace(&self, prefix: &str) -> Result<TestNamespace> {
        let metadata = ObjectMeta { name: Some(unique(prefix)), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let made = Api::all(self.client()).create(&PostParams::default(), &namespace).await?;
        Ok(TestNamespace { name: made.name_any(), config: self.config.clone() })
    }

    /// Applies the definitions and waits until they are served. Tests that do this at once wait for each other.
    pub async fn install_crds(&self, crds: &[CustomResourceDefinition]) -> Result<()> {
        let path = self.ready.kubeconfig.with_extension("crds.lock");
        let _lock = blocking(move || {
            let lock = File::create(path)?;
            lock.lock()?;
            Ok(lock)
        })
        .await?;
        crds::install(&self.client, crds).await
    }

    /// Runs kubectl as the administrator. A failure of the command is in the output, not an error here.
    pub async fn kubectl(&self, args: &[&str]) -> Result<Output> {
        self.run(Component::Kubectl, args).await
    }

    /// Runs helm as the administrator, like [`TestCluster::kubectl`].
    pub async fn helm(&self, args: &[&str]) -> Result<Output> {
        self.run(Component::Helm, args).await
    }

    async fn run(&self, component: Component, args: &[&str]) -> Result<Output> {
        let paths = blocking(move || ensure(&[component])).await?;
        let home = self.ready.dir.join("home");
        let mut command = tokio::process::Command::new(paths.get(component)?);
        command.args(args).env("KUBECONFIG", self.kubeconfig());
        // What the user has set up for these programs must not change a test, nor the other way round.
        command.env("HOME", &home).env("KUBECACHEDIR", home.join("kube"));
        for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(name, home.join(name));
        }
        command.output().await.with_context(|| format!("running {}", component.name()))
    }

    /// Asks for a token of this service account and acts with that alone.
    pub async fn client_for_service_account(&self, namespace: &str, name: &str) -> Result<Identity> {
        let api = Api::<ServiceAccount>::namespaced(self.client(), namespace);
        let spec = TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let answer = api.create_token_request(name, &PostParams::default(), &request).await?;
        let token = answer.status.context("the API server gave no token")?.token;
        self.identity(serde_json::from_value(json!({ "token": token }))?).await
    }

    /// Acts as this user, with these groups and `system:authenticated`.
    ///
    /// By a client certificate where we have the cluster's authority and it can say it (at most one group); else the
    /// administrator impersonates the user.
    pub async fn client_as(&self, user: &str, groups: &[&str]) -> Result<Identity> {
        match (Pki::open(&self.ready.dir.join("pki")), groups) {
            (Some(pki), [] | [_]) => {
                let leaf = pki.client(user, groups.first().copied())?;
                self.identity(serde_json::from_value(leaf.user())?).await
            }
            _ => {
                let mut admin = identity::user(&self.config);
                admin.impersonate = Some(user.to_owned());
                admin.impersonate_groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
                self.identity(admin).await
            }
        }
    }

    async fn identity(&self, user: AuthInfo) -> Result<Identity> {
        let config = identity::with_user(&self.config, user);
        let dir = tempfile::tempdir()?;
        let kubeconfig = dir.path().join("kubeconfig");
        fs::write(&kubeconfig, serde_json::to_vec_pretty(&config)?)?;
        Ok(Identity { client: identity::client(config).await?, kubeconfig, _dir: dir })
    }

    /// Stops a server of an own cluster and starts it again: same port, same certificates, same data.
    pub async fn restart(&self, server: &str) -> Result<()> {
        self.command(format!("restart {server}")).await
    }

    pub async fn stop(&self, server: &str) -> Result<()> {
        self.command(format!("stop {server}")).await
    }

    pub async fn start_server(&self, server: &str) -> Result<()> {
        self.command(format!("start {server}")).await
    }

    async fn command(&self, line: String) -> Result<()> {
        let Hold::Own(own) = &self.hold else { bail!("{line:?} is for own clusters only: others use this one, too") };
        let own = own.clone();
        blocking(move || own.command(&line)).await
    }

    /// The processes of the servers when the cluster became ready.
    pub fn pids(&self) -> impl Iterator<Item = (&str, u32)> {
        self.ready.pids.iter().map(|(name, pid)| (name.as_str(), *pid))
    }
}

/// Keys and tokens are not for logs.
impl std::fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestCluster").field("ready", &self.ready).field("hold", &self.hold).finish_non_exhaustive()
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.context("a blocking task was lost")?
}

/// Unlike any other in any process.
fn unique(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed).to_string();
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos()).to_string();
    names::hashed(prefix, &[&std::process::id().to_string(), &nanos, &count], 40)
}

// === impl TestNamespace ===

impl TestNamespace {
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// On a thread and runtime of its own, for the test's runtime may be ending. It waits for the request only.
impl Drop for TestNamespace {
    fn drop(&mut self) {
        let (name, config) = (std::mem::take(&mut self.name), self.config.clone());
        let delete = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let api = Api::<Namespace>::all(identity::client(config).await?);
                tokio::time::timeout(DELETE_LIMIT, api.delete(&name, &DeleteParams::background())).await??;
                anyhow::Ok(())
            })
        };
        // Best effort: a namespace that stays harms nobody, its name is unique.
        let _ = std::thread::spawn(delete).join();
    }
}

// === impl Identity ===

impl Identity {
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

/// Keys and tokens are not for logs.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("kubeconfig", &self.kubeconfig).finish_non_exhaustive()
    }
}
