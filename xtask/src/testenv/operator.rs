// SPDX-License-Identifier: Apache-2.0
//! `up --with-operator`: the suite on a cluster, with the rights it has in production and no more.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use bivouac::cli::{Cli, Command as Role};
use bivouac_testenv::components::{Component, Paths};
use clap::Parser;
use kube::config::{AuthInfo, Kubeconfig};
use serde_json::json;

use crate::repo;

const NAMESPACE: &str = "bivouac-system";
const ACCOUNT: &str = "bivouac";
const ADMIN: &str = "127.0.0.1:8081";

/// Installs everything and runs the operator until a signal stops it.
pub fn run(kubeconfig: &Path, paths: &Paths) -> Result<()> {
    let kubectl = Kubectl { program: paths.get(Component::Kubectl)?, kubeconfig };
    install(&kubectl)?;
    let own = own_kubeconfig(&kubectl)?;
    println!(
        "Installed: {} kinds, the operator's account and rights, the admission policies",
        bivouac_api::crds().len()
    );
    println!("Running:   the operator, health and metrics on http://{ADMIN}\n\nTry in another terminal:");
    super::print_usage(kubeconfig, paths)?;
    println!("  kubectl apply -f examples/tenancy/smallest.yaml");
    println!("  kubectl get workspaces");
    println!("  kubectl get rolebindings --namespace notebooks\n");
    println!("Ctrl-C stops the operator and the cluster.\n");
    let own = own.display().to_string();
    let args = ["bivouac", "operator", "--kubeconfig", &own, "--admin-address", ADMIN, "--lease-namespace", NAMESPACE];
    match Cli::try_parse_from(args)?.command {
        Role::Operator(options) => bivouac::operator::run(options),
        other => bail!("{other:?} is not the operator"),
    }
}

fn install(kubectl: &Kubectl<'_>) -> Result<()> {
    let account = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}),
    ];
    kubectl.apply(&bivouac::print::yaml(&account)?)?;
    kubectl.apply(&bivouac::print::yaml(&bivouac_api::crds())?)?;
    kubectl.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"], "")?;
    for file in ["deploy/rbac.yaml", "deploy/policies.yaml"] {
        kubectl.apply(&std::fs::read_to_string(repo::root().join(file)).context(file)?)?;
    }
    Ok(())
}

/// Beside the administrator's kubeconfig, so that it goes away with the cluster.
fn own_kubeconfig(kubectl: &Kubectl<'_>) -> Result<PathBuf> {
    let token = kubectl.run(&["create", "token", ACCOUNT, "-n", NAMESPACE, "--duration=24h"], "")?;
    let mut config = Kubeconfig::read_from(kubectl.kubeconfig)?;
    let user: AuthInfo = serde_json::from_value(json!({"token": token.trim()}))?;
    config.auth_infos.iter_mut().for_each(|named| named.auth_info = Some(user.clone()));
    let path = kubectl.kubeconfig.with_file_name("operator.kubeconfig");
    std::fs::write(&path, serde_json::to_vec_pretty(&config)?)?;
    Ok(path)
}

struct Kubectl<'a> {
    program: &'a Path,
    kubeconfig: &'a Path,
}

impl Kubectl<'_> {
    fn apply(&self, yaml: &str) -> Result<String> {
        self.run(&["apply", "--server-side", "-f", "-"], yaml)
    }

    fn run(&self, args: &[&str], input: &str) -> Result<String> {
        let mut command = Command::new(self.program);
        command.args(args).arg("--kubeconfig").arg(self.kubeconfig);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("running kubectl")?;
        // kubectl reads all of its input before it prints more than a pipe holds.
        child.stdin.take().context("kubectl has no input")?.write_all(input.as_bytes())?;
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("kubectl {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
