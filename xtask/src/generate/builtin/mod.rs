// SPDX-License-Identifier: Apache-2.0
//! The table of built-in kinds of the embedded API server, read from the real one.
//!
//! Making it takes a cluster and some seconds, so a plain check only looks at its header: the version of Kubernetes and
//! a hash of all that goes in. `--builtin` makes it anew; a test with real servers compares all of it.

mod learn;
pub mod numbers;
mod probe;
mod read;
mod types;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use bivouac_apiserver::builtin::{Builtins, Place, Resource};
use bivouac_testenv::{Options, TestCluster};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Stale;
use types::TypeMap;

pub const FILE: &str = "crates/apiserver/src/builtin/table.json";

/// Objects whose answers teach us the defaults.
const SAMPLES: &str = "xtask/src/generate/builtin/samples";

const KUBERNETES: &str = "1.36.3";

/// Counts up when the generator changes what it writes.
const FORMAT: u32 = 6;

/// What these fill in is no default; the embedded server has them itself.
const NO_ADMISSION: &str = "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds,Priority,LimitRanger,\
                            ResourceQuota,PodSecurity,DefaultStorageClass,DefaultIngressClass,RuntimeClass,\
                            StorageObjectInUseProtection,TaintNodesByCondition,CertificateSigning,CertificateApproval,\
                            CertificateSubjectRestriction";

/// Says whether the header is out of date. It needs no server.
pub fn stale(root: &Path) -> Result<Option<Stale>> {
    let Ok(text) = fs::read_to_string(root.join(FILE)) else { return Ok(Some(Stale::Missing(PathBuf::from(FILE)))) };
    let fresh = text.lines().nth(1) == Some(&header(root)?);
    Ok((!fresh).then(|| Stale::Different(PathBuf::from(FILE))))
}

fn header(root: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(FORMAT.to_be_bytes());
    for (name, text) in texts(root)? {
        hash.update(name.as_bytes());
        hash.update(text.as_bytes());
    }
    let hash: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("\"made\":{},", json!(format!("Made by `cargo xtask gen`. Do not edit. {KUBERNETES} {hash}"))))
}

fn texts(root: &Path) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(root.join(SAMPLES)).context(SAMPLES)? {
        let entry = entry?;
        texts.push((entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path())?));
    }
    texts.sort();
    Ok(texts)
}

fn samples(root: &Path) -> Result<Vec<Value>> {
    let mut samples = Vec::new();
    for (name, text) in texts(root)? {
        let more: Vec<Value> = serde_saphyr::from_multiple(&text).with_context(|| name.clone())?;
        samples.extend(more);
    }
    Ok(samples)
}

/// Starts a cluster and makes the table from what its API server says.
pub fn make(root: &Path) -> Result<String> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let options = Options {
            without: ["kube-controller-manager", "kube-scheduler", "kwok"].map(str::to_owned).into(),
            apiserver_args: vec![NO_ADMISSION.to_owned()],
            ..Options::default()
        };
        let cluster = TestCluster::start(options).await?;
        let server = read::Server::new(cluster.client());
        let version = server.version().await?;
        if version != format!("v{KUBERNETES}") {
            bail!("the API server is {version}, the table is for {KUBERNETES}; change it in the generator first");
        }
        table(root, &server).await
    })
}

async fn table(root: &Path, server: &read::Server) -> Result<String> {
    let mut types = types::compact(&server.definitions().await?);
    let resources = server.resources().await?;
    let known = Builtins::decode(&print(&header(root)?, &types, &resources, &[])?)?;
    let samples = learn::ask(server, &known, samples(root)?).await?;
    let learned = learn::rules(&known, &samples);
    let zero = probe::zero(server, &known, &samples).await?;
    for (name, fill) in learned.fill {
        types::set(&mut types, &name, "fill", Value::Object(fill));
    }
    for (name, fields) in zero {
        types::set(&mut types, &name, "zero", json!(fields));
    }
    print(&header(root)?, &types, &resources, &learned.places)
}

/// One line per type, resource and place, so that people can read a difference.
fn print(header: &str, types: &TypeMap, resources: &[Resource], places: &[Place]) -> Result<String> {
    let types: Vec<_> = types.iter().map(|(name, node)| format!("{}:{node}", json!(name))).collect();
    let resources = lines(resources)?;
    let places = lines(places)?;
    Ok(format!(
        "{{\n{header}\n\"types\":{{\n{}\n}},\n\"resources\":[\n{resources}\n],\n\"places\":[\n{places}\n]\n}}\n",
        types.join(",\n")
    ))
}

fn lines(all: &[impl serde::Serialize]) -> Result<String> {
    let lines: Result<Vec<_>, _> = all.iter().map(serde_json::to_string).collect();
    Ok(lines?.join(",\n"))
}
