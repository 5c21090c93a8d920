// SPDX-License-Identifier: Apache-2.0
//! The real operator, as a process of its own.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use bivouac_runtime::reconcile::Kind;
use bivouac_testenv::TestCluster;
use kube::{Api, Client, api::ListParams};

use super::audit::{self, Requests};
use crate::repo;

/// As the chart has it.
const HEAPS: (&str, &str) = ("MALLOC_ARENA_MAX", "1");

pub struct Operator(Child);

/// What it asked of the API server, and what it took.
pub struct Usage {
    pub requests: Requests,
    /// While nothing happened.
    pub steady: Requests,
    /// By a second start over the settled world.
    pub restart: Requests,
    pub rss_mb: f64,
}

/// A fresh CRD answers with 503 or 404 for a moment; that is not what is measured.
pub async fn wait_until_served<K: Kind>(client: &Client) -> Result<()> {
    let api = Api::<K>::all(client.clone());
    let until = Instant::now() + Duration::from_secs(60);
    while let Err(error) = api.list(&ListParams::default()).await {
        if Instant::now() > until {
            bail!("{} are not served: {error}", K::plural(&()));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The watch cache of a new kind warms up.
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(())
}

/// The release build of the binary.
pub fn build() -> Result<PathBuf> {
    let status = repo::cargo().args(["build", "--release", "--quiet", "--package", "bivouac"]).status()?;
    ensure!(status.success(), "the release build of the operator failed");
    Ok(repo::programs()?.join("bivouac"))
}

impl Operator {
    /// Starts it and waits until it leads and has listed everything.
    pub async fn start(binary: &Path, kubeconfig: &Path, identity: &str) -> Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(binary)
            .arg("operator")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args([
                "--admin-address",
                &address,
                "--lease-namespace",
                "default",
                "--identity",
                identity,
                "--log",
                "warn",
            ])
            .env(HEAPS.0, HEAPS.1)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let operator = Operator(child);
        let until = Instant::now() + Duration::from_secs(60);
        while !(get(&address, "/readyz").await?.contains(" 200 ")
            && get(&address, "/metrics").await?.contains("bivouac_leader 1"))
        {
            if Instant::now() > until {
                bail!("the operator is not ready after a minute: {}", get(&address, "/readyz").await?);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // Its first pass over an empty world.
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(operator)
    }

    /// Lets it settle, watches it do nothing for a while, and starts another one in its place. `before` was counted
    /// before there was work.
    pub async fn end(self, binary: &Path, cluster: &TestCluster, before: &Requests, steady: Duration) -> Result<Usage> {
        let log = cluster.audit_log().context("the cluster keeps no audit log")?;
        let settled = audit::settled(log).await?;
        let rss_mb = self.rss_mb()?;
        tokio::time::sleep(steady).await;
        let later = audit::count(log)?;
        drop(self);
        let again = Operator::start(binary, cluster.kubeconfig(), "second").await?;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let restarted = audit::count(log)?;
        drop(again);
        Ok(Usage {
            requests: settled.since(before),
            steady: later.since(&settled),
            restart: restarted.since(&later),
            rss_mb,
        })
    }

    fn rss_mb(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib / 1024.0)
    }
}

/// Stops it in order, so that the lease is given back.
impl Drop for Operator {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

/// The whole answer to a GET, or nothing while nobody listens yet.
async fn get(address: &str, path: &str) -> Result<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let Ok(mut stream) = tokio::net::TcpStream::connect(address).await else { return Ok(String::new()) };
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::{HEAPS, repo};

    #[test]
    fn the_operator_is_measured_as_the_chart_starts_it() {
        let chart = std::fs::read_to_string(repo::root().join("deploy/chart/bivouac/templates/_env.tpl")).unwrap();
        let (name, value) = HEAPS;
        assert!(chart.contains(&format!("- name: {name}\n  value: \"{value}\"\n")), "{chart}");
    }
}
