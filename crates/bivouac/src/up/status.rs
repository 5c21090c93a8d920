// SPDX-License-Identifier: Apache-2.0
//! `bivouac status`: whether it runs, since when, and what is in it.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result, anyhow};
use bivouac_runtime::client;
use serde_json::{Value, json};

use super::{
    data_dir::{DataDir, Holder, Instance, KUBECONFIG},
    own_command, say,
    scene::{self, Scene},
    shell_path,
};
use crate::cli::{StatusOptions, StatusOutput};

/// What scripts may rely on.
const NOT_RUNNING: u8 = 3;
const PATIENCE: Duration = Duration::from_secs(5);

pub fn run(options: &StatusOptions) -> Result<ExitCode> {
    let dir = DataDir::of(&options.place)?;
    let report = match dir.holder() {
        Holder::Nobody => Report { dir: &dir, instance: None, running: false, scene: None },
        Holder::Unknown => Report { dir: &dir, instance: None, running: true, scene: None },
        Holder::Instance(instance) => {
            let scene = if instance.ready { Some(look(&dir, &instance)?) } else { None };
            Report { dir: &dir, instance: Some(instance), running: true, scene }
        }
    };
    match options.output {
        StatusOutput::Table => report.table().iter().for_each(|line| say(line)),
        StatusOutput::Json => say(&serde_json::to_string_pretty(&report.json())?),
    }
    Ok(ExitCode::from(if report.running { 0 } else { NOT_RUNNING }))
}

#[tokio::main(flavor = "current_thread")]
async fn look(dir: &DataDir, instance: &Instance) -> Result<Scene> {
    let config = client::config(Some(&dir.file(KUBECONFIG))).await?;
    let client = client::connect(config, concat!("bivouac/", env!("CARGO_PKG_VERSION")))?;
    let mut scene = Scene::new(instance.since, instance.address.clone().unwrap_or_default(), dir.path().to_owned());
    let looked = tokio::time::timeout(PATIENCE, scene::look(&client, &mut scene)).await;
    looked.map_err(|_| anyhow!("process {} does not answer", instance.pid))?.context("the server cannot be read")?;
    Ok(scene)
}

struct Report<'a> {
    dir: &'a DataDir,
    instance: Option<Instance>,
    running: bool,
    scene: Option<Scene>,
}

impl Report<'_> {
    fn table(&self) -> Vec<String> {
        let mut lines = match (&self.instance, self.running) {
            (_, false) => vec!["not running".to_owned()],
            (Some(instance), true) if instance.ready => vec![
                format!(
                    "running    since {} (process {})",
                    instance.since.strftime("%Y-%m-%d %H:%M:%S UTC"),
                    instance.pid
                ),
                format!("address    {}", instance.address.as_deref().unwrap_or_default()),
                format!("kubeconfig {}", shell_path(&self.dir.file(KUBECONFIG))),
            ],
            _ => vec!["starting".to_owned()],
        };
        lines.push(format!("data       {}", shell_path(self.dir.path())));
        if !self.running {
            lines.push(format!("start with {}", own_command("up", self.dir)));
        }
        if let Some(scene) = &self.scene {
            lines.push(String::new());
            let kinds = scene.summary();
            lines.extend(
                kinds.iter().map(|(kind, states)| format!("{:<24} {}", scene::plural(kind), scene::counted(states))),
            );
            let waits = scene.waits();
            lines.extend(waits.iter().map(|(who, why)| format!("{who} waits: {why}")));
        }
        lines
    }

    fn json(&self) -> Value {
        let instance = self.instance.as_ref();
        let scene = self.scene.as_ref();
        json!({
            "running": self.running,
            "ready": instance.is_some_and(|instance| instance.ready),
            "pid": instance.map(|instance| instance.pid),
            "since": instance.map(|instance| instance.since.to_string()),
            "address": instance.and_then(|instance| instance.address.clone()),
            "dataDir": self.dir.path(),
            "kubeconfig": self.dir.file(KUBECONFIG),
            "objects": scene.map(|scene| scene.summary().into_iter().collect::<std::collections::BTreeMap<_, _>>()),
            "waiting": scene.map(|scene| scene.waits().into_iter().collect::<std::collections::BTreeMap<_, _>>()),
        })
    }
}
