// SPDX-License-Identifier: Apache-2.0
//! The real operator, as a process of its own.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::repo;

pub struct Operator(Child);

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

    pub fn rss_mb(&self) -> Result<f64> {
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
