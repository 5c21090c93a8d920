// SPDX-License-Identifier: Apache-2.0
//! `bivouac minicluster attach`: a shell beside the lead broker. kubectl does the talking: it knows terminals, and who
//! looks into pods has it.

use std::{
    io::IsTerminal,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use anyhow::{Result, anyhow, bail};
use bivouac_api::flux::MiniCluster;
use bivouac_miniclusters::cluster::view;

use super::{access::Place, list::row, logs::newest, options::AttachOptions, submit::word};
use crate::print;

pub async fn run(options: &AttachOptions) -> Result<ExitCode> {
    let place = Place::reach(&options.access).await?;
    let object = place.get(&options.name).await?;
    let Some(pod) = newest(&place, &options.name, 0).await? else {
        bail!("{} has no lead broker now: {}", options.name, row(&object).message);
    };
    let words = words(&place.flags(), &options.name, &pod, &object);
    let line = format!("kubectl {}", words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" "));
    if options.print {
        print::say(&format!("{line}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !std::io::stdin().is_terminal() {
        bail!("a shell needs a terminal. In one, this opens it: {line}");
    }
    let failed = Command::new("kubectl").args(&words).exec();
    Err(anyhow!("kubectl cannot be started: {failed}\nWhere it is installed, this opens a shell: {line}"))
}

/// What kubectl is told. The script stands in every pod of a MiniCluster.
fn words(flags: &[String], name: &str, pod: &str, object: &MiniCluster) -> Vec<String> {
    let view = view(&object.spec.flux.clone().unwrap_or_default());
    let script = format!("{}/flux-connect.sh", view.mount_path);
    let mut words = vec!["exec".to_owned()];
    words.extend_from_slice(flags);
    words.extend(["-it", pod, "-c", name, "--", "bash", &script].map(str::to_owned));
    words
}
