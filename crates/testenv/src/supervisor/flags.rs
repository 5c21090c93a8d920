// SPDX-License-Identifier: Apache-2.0
//! The flags of every server, and the ports they listen on.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Setup;
use crate::components::{Component, Paths};
use crate::pki::{Pki, SERVICE_RANGE};

/// Below the range of outgoing connections: else a client that waits for a stopped server could take its port.
const PORTS: Range<u16> = 12_000..32_000;
/// The stage of KWOK that lets the pods of Jobs succeed.
const POD_COMPLETE: &str = "pod-complete.yaml";
/// Known to everybody, and good for loopback only.
pub(super) const TOKEN: &str = "testenv-admin-token";

#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    etcd: u16,
    etcd_peer: u16,
    apiserver: u16,
    controller_manager: u16,
    scheduler: u16,
    kwok: u16,
    kueue: u16,
}

/// Everything the flags are made of.
pub(super) struct Flags<'a> {
    pub(super) dir: &'a Path,
    pub(super) ports: Ports,
    pub(super) pki: &'a Pki,
    pub(super) paths: &'a Paths,
}

// === impl Ports ===

impl Ports {
    pub(super) fn pick() -> Result<Self> {
        // The listeners live until all ports are found, so that no two are the same.
        let mut taken = Vec::new();
        let mut next = || -> Result<u16> {
            let listener = free_listener()?;
            let port = listener.local_addr()?.port();
            taken.push(listener);
            Ok(port)
        };
        Ok(Self {
            etcd: next()?,
            etcd_peer: next()?,
            apiserver: next()?,
            controller_manager: next()?,
            scheduler: next()?,
            kwok: next()?,
            kueue: next()?,
        })
    }

    pub(super) fn of(self, component: Component) -> u16 {
        match component {
            Component::Etcd => self.etcd,
            Component::KubeControllerManager => self.controller_manager,
            Component::KubeScheduler => self.scheduler,
            Component::Kwok => self.kwok,
            Component::Kueue => self.kueue,
            Component::KubeApiserver | Component::Kubectl | Component::Helm | Component::Kubelet => self.apiserver,
        }
    }
}

/// Starts at a place that differs between processes and calls, so that clusters started together rarely meet.
fn free_listener() -> Result<TcpListener> {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
    let start = nanos ^ std::process::id().wrapping_mul(7919);
    let count = u32::from(PORTS.end - PORTS.start);
    (0..count)
        .filter_map(|step| u16::try_from(start.wrapping_add(step) % count).ok())
        .find_map(|offset| TcpListener::bind((Ipv4Addr::LOCALHOST, PORTS.start + offset)).ok())
        .context("no free loopback port")
}

// === impl Flags ===

impl Flags<'_> {
    pub(super) fn of(&self, component: Component, setup: &Setup) -> Result<Vec<String>> {
        match component {
            Component::Etcd => Ok(self.etcd()),
            Component::KubeApiserver => Ok(self.apiserver(setup)),
            Component::KubeControllerManager => Ok(self.controller_manager(setup)),
            Component::KubeScheduler => Ok(self.controllers("scheduler", self.ports.scheduler)),
            Component::Kwok => self.kwok(setup),
            Component::Kueue => Ok(self.kueue()),
            Component::Kubectl | Component::Helm | Component::Kubelet => {
                bail!("{} is not a server of the control plane", component.name())
            }
        }
    }

    fn etcd(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer);
        vec![
            format!("--data-dir={}", self.file("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // A test cluster does not outlive the machine: durability would only cost time.
            "--unsafe-no-fsync".into(),
            "--log-level=warn".into(),
        ]
    }

    fn apiserver(&self, setup: &Setup) -> Vec<String> {
        let mut flags = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            "--bind-address=127.0.0.1".into(),
            "--advertise-address=127.0.0.1".into(),
            // An endpoint for a loopback address would be refused.
            "--endpoint-reconciler-type=none".into(),
            format!("--secure-port={}", self.ports.apiserver),
            format!("--tls-cert-file={}", self.pki("server.crt")),
            format!("--tls-private-key-file={}", self.pki("server.key")),
            format!("--client-ca-file={}", self.pki("ca.crt")),
            format!("--token-auth-file={}", self.file("tokens.csv")),
            "--authorization-mode=RBAC".into(),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--service-account-key-file={}", self.pki("accounts.pub")),
            format!("--service-account-signing-key-file={}", self.pki("accounts.key")),
            format!("--service-cluster-ip-range={SERVICE_RANGE}"),
            "--allow-privileged".into(),
        ];
        if setup.audit {
            flags.push(format!("--audit-policy-file={}", self.file("audit-policy.yaml")));
            flags.push(format!("--audit-log-path={}", self.file("audit.log")));
        }
        flags.extend(setup.apiserver_args.iter().cloned());
        flags
    }

    fn controllers(&self, name: &str, port: u16) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.file(&format!("{name}.kubeconfig"))),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", self.pki("server.crt")),
            format!("--tls-private-key-file={}", self.pki("server.key")),
            "--leader-elect=false".into(),
            // The defaults are for shared clusters and would be what a test waits for.
            "--kube-api-qps=500".into(),
            "--kube-api-burst=1000".into(),
        ]
    }

    fn controller_manager(&self, setup: &Setup) -> Vec<String> {
        let mut flags = self.controllers("controller-manager", self.ports.controller_manager);
        flags.extend([
            // Each controller has its own account and rights, as in a real cluster.
            format!("--use-service-account-credentials={}", !setup.one_account),
            format!("--service-account-private-key-file={}", self.pki("accounts.key")),
            format!("--root-ca-file={}", self.pki("ca.crt")),
            format!("--cluster-signing-cert-file={}", self.pki("ca.crt")),
            format!("--cluster-signing-key-file={}", self.pki("ca.key")),
        ]);
        flags
    }

    fn kwok(&self, setup: &Setup) -> Result<Vec<String>> {
        let mut flags = vec![
            format!("--kubeconfig={}", self.file("kwok.kubeconfig")),
            format!("--server-address=127.0.0.1:{}", self.ports.kwok),
            "--manage-all-nodes=false".into(),
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".into(),
        ];
        for stage in self.paths.kwok_stages()? {
            let is_slower = setup.job_pods_run_ms > 0 && stage.file_name() == Some(POD_COMPLETE.as_ref());
            let stage = if is_slower { self.delayed(&stage, setup.job_pods_run_ms)? } else { stage };
            flags.push(format!("--config={}", stage.display()));
        }
        Ok(flags)
    }

    /// A copy of a stage of KWOK that comes so much later.
    fn delayed(&self, stage: &Path, milliseconds: u32) -> Result<PathBuf> {
        let text = fs::read_to_string(stage).with_context(|| format!("reading {}", stage.display()))?;
        let mut stage: Value = serde_saphyr::from_str(&text).context("a stage of KWOK is no YAML")?;
        let spec = stage.get_mut("spec").and_then(Value::as_object_mut).context("a stage of KWOK has no spec")?;
        spec.insert("delay".into(), json!({"durationMilliseconds": milliseconds}));
        let copy = self.dir.join(POD_COMPLETE);
        fs::write(&copy, stage.to_string()).with_context(|| format!("writing {}", copy.display()))?;
        Ok(copy)
    }

    fn kueue(&self) -> Vec<String> {
        let flags = [("kubeconfig", "kueue.kubeconfig"), ("config", "kueue/config.json")];
        flags.map(|(flag, file)| format!("--{flag}={}", self.file(file))).into()
    }

    fn file(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    fn pki(&self, name: &str) -> String {
        self.pki.path(name).display().to_string()
    }
}
