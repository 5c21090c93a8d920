// SPDX-License-Identifier: Apache-2.0
//! The control plane: which servers, with which flags, in which order.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::flags::{Flags, Ports, TOKEN};
use super::kueue::Kueue;
use super::server::Server;
use super::{Ready, Setup};
use crate::components::{Component, ensure};
use crate::identity;
use crate::pki::{Pki, write_kubeconfig};

const START_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// In the order of starting; they are stopped in reverse.
const ORDER: [Component; 6] = [
    Component::Etcd,
    Component::KubeApiserver,
    Component::KubeControllerManager,
    Component::KubeScheduler,
    Component::Kwok,
    Component::Kueue,
];

#[derive(Debug)]
pub(super) struct Plane {
    servers: Vec<Server>,
    ports: Ports,
    ready: Ready,
    kueue: Option<Kueue>,
}

// === impl Plane ===

impl Plane {
    pub(super) fn prepare(setup: &Setup) -> Result<Self> {
        let without = setup.without.iter().map(|name| known(name)).collect::<Result<Vec<_>>>()?;
        if let Some(base) = without.iter().find(|part| **part <= Component::KubeApiserver) {
            bail!("there is no cluster without {}", base.name());
        }
        let is_wanted = |part: &Component| setup.kueue || *part != Component::Kueue;
        let parts: Vec<_> = ORDER.into_iter().filter(|part| is_wanted(part) && !without.contains(part)).collect();
        let paths = ensure(&parts)?;
        let dir = setup.dir.canonicalize()?;
        let ports = Ports::pick()?;
        let pki = Pki::create(&dir.join("pki"))?;
        let server = format!("https://127.0.0.1:{}", ports.of(Component::KubeApiserver));
        write_identities(&dir, &server, &pki, setup)?;
        let flags = Flags { dir: &dir, ports, pki: &pki, paths: &paths };
        let mut servers = Vec::new();
        for part in parts.iter().copied() {
            servers.push(Server::new(part, paths.get(part)?, &dir, flags.of(part, setup)?));
        }
        let kueue = parts.contains(&Component::Kueue).then(|| Kueue::prepare(&dir, ports, &pki, &paths)).transpose()?;
        let audit_log = setup.audit.then(|| dir.join("audit.log"));
        let kubeconfig = dir.join("admin.kubeconfig");
        let ready = Ready { kubeconfig, dir, server, audit_log, pids: BTreeMap::new() };
        Ok(Self { servers, ports, ready, kueue })
    }

    /// etcd and the API server one after the other, their clients together.
    pub(super) async fn start_all(&mut self) -> Result<Ready> {
        let parts: Vec<_> = self.servers.iter().map(|server| server.component).collect();
        let (base, clients): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| *part <= Component::KubeApiserver);
        for part in base {
            self.server(part)?.spawn()?;
            self.wait(part).await?;
        }
        if let Some(kueue) = &self.kueue {
            kueue.install(&self.ready.kubeconfig).await.context("installing Kueue")?;
        }
        for part in &clients {
            self.server(*part)?.spawn()?;
        }
        for part in clients {
            self.wait(part).await?;
        }
        Ok(Ready { pids: self.pids(), ..self.ready.clone() })
    }

    pub(super) async fn stop_all(&mut self) {
        for server in self.servers.iter_mut().rev() {
            if let Err(error) = server.stop().await {
                eprintln!("testenv: {error:#}");
            }
        }
    }

    pub(super) async fn start(&mut self, name: &str) -> Result<()> {
        let part = known(name)?;
        self.server(part)?.spawn()?;
        self.wait(part).await
    }

    pub(super) async fn stop(&mut self, name: &str) -> Result<()> {
        self.server(known(name)?)?.stop().await
    }

    pub(super) fn pids(&self) -> BTreeMap<String, u32> {
        self.servers.iter().filter_map(|server| Some((server.component.name().to_owned(), server.pid()?))).collect()
    }

    fn server(&mut self, part: Component) -> Result<&mut Server> {
        let server = self.servers.iter_mut().find(|server| server.component == part);
        server.with_context(|| format!("this cluster was started without {}", part.name()))
    }

    async fn wait(&mut self, part: Component) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let ready = match part {
                Component::KubeApiserver => identity::is_ready(&self.ready.kubeconfig).await,
                _ => TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports.of(part))).await.is_ok(),
            };
            self.server(part)?.check()?;
            if ready {
                return Ok(());
            }
            if Instant::now() > deadline {
                let (name, dir) = (part.name(), self.ready.dir.display());
                bail!("{name} is not ready after {} s; see {dir}/{name}.log", START_LIMIT.as_secs());
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// The server of that name; `scheduler` and `kube-scheduler` are the same.
fn known(name: &str) -> Result<Component> {
    let found = ORDER.into_iter().find(|part| part.name() == name || part.name().strip_prefix("kube-") == Some(name));
    found.with_context(|| format!("{name:?} is no server; there are: {}", ORDER.map(Component::name).join(", ")))
}

fn write_identities(dir: &Path, server: &str, pki: &Pki, setup: &Setup) -> Result<()> {
    let write = |file: &str, user: &Value| write_kubeconfig(&dir.join(file), server, &pki.path("ca.crt"), user);
    write("admin.kubeconfig", &pki.client("admin", Some("system:masters"))?.user())?;
    // Without accounts of their own its controllers do everything under this name.
    let group = setup.one_account.then_some("system:masters");
    write("controller-manager.kubeconfig", &pki.client("system:kube-controller-manager", group)?.user())?;
    write("scheduler.kubeconfig", &pki.client("system:kube-scheduler", None)?.user())?;
    write("kueue.kubeconfig", &pki.client("kueue", Some("system:masters"))?.user())?;
    write("kwok.kubeconfig", &pki.client("kwok", Some("system:masters"))?.user())?;
    write("token.kubeconfig", &json!({"token": TOKEN}))?;
    fs::write(dir.join("tokens.csv"), format!("{TOKEN},token-admin,token-admin,\"system:masters\"\n"))?;
    // The control plane's own requests are most of all, and nobody asks for them.
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "users": ["kwok", "system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]},
            {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
            {"level": "Metadata"},
        ],
    });
    fs::write(dir.join("audit-policy.yaml"), policy.to_string())?;
    Ok(())
}
