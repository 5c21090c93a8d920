// SPDX-License-Identifier: Apache-2.0
//! `bivouac minicluster submit`: from a command line to a MiniCluster, its output and its exit code.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Result, anyhow, bail};
use bivouac_api::flux::{Container, Logging, MiniCluster, MiniClusterSpec, Pod};
use bivouac_core::Quantity as Amount;
use bivouac_miniclusters::script::quote::quote;
use k8s_openapi::{
    api::core::v1::ResourceRequirements,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use kube::{ResourceExt, api::PostParams};

use super::{access::Place, follow, options::SubmitOptions};
use crate::print;

/// As much of a command's name as fits into that of a MiniCluster with its random end and the ranks.
const STEM_MAX: usize = 30;

pub async fn run(options: &SubmitOptions) -> Result<ExitCode> {
    let mut wanted = minicluster(options)?;
    if options.dry_run.is_some() {
        wanted.metadata.namespace.clone_from(&options.access.namespace);
        print::say(&print::yaml(&[wanted])?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let place = Place::reach(&options.access).await?;
    let made = place.miniclusters().create(&PostParams::default(), &wanted).await;
    let name = made.map_err(|error| place.explain(&error))?.name_any();
    if options.detach {
        print::say(&format!("{name}\n"))?;
        eprintln!("It runs by itself. See it:    {}", place.command("logs -f", &name));
        eprintln!("                   Delete it: {}", place.command("delete", &name));
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{name}: made in the namespace {}, with {}", place.namespace, brokers(options.size));
    tokio::select! {
        code = follow::to_the_end(&place, &name, !options.wait) => Ok(exit_code(code?)),
        _ = tokio::signal::ctrl_c() => {
            eprintln!("\n{name} goes on without you.");
            eprintln!("See it again: {}", place.command("logs -f", &name));
            eprintln!("Delete it:    {}", place.command("delete", &name));
            Ok(ExitCode::from(130))
        }
    }
}

fn brokers(size: i32) -> String {
    if size == 1 { "one broker".to_owned() } else { format!("{size} brokers") }
}

/// Codes above 255 cannot be told to a shell; they are failures all the same.
fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// The MiniCluster that the flags describe.
pub fn minicluster(options: &SubmitOptions) -> Result<MiniCluster> {
    let command: Vec<String> = options.command.iter().map(|text| word(text)).collect();
    let container = Container {
        image: options.image.clone(),
        command: command.join(" "),
        environment: options.env.iter().cloned().collect(),
        resources: resources(options)?,
        ..Container::default()
    };
    let annotations: BTreeMap<String, String> = options.pod_annotation.iter().cloned().collect();
    let spec = MiniClusterSpec {
        containers: vec![container],
        size: options.size,
        tasks: options.tasks.unwrap_or(options.size),
        logging: (!options.verbose).then(|| Logging { quiet: true, ..Logging::default() }),
        pod: (!annotations.is_empty()).then(|| Pod { annotations, ..Pod::default() }),
        ..MiniClusterSpec::default()
    };
    let mut minicluster = MiniCluster { metadata: ObjectMeta::default(), spec, status: None };
    match &options.name {
        Some(name) => minicluster.metadata.name = Some(name.clone()),
        None => minicluster.metadata.generate_name = Some(format!("{}-", stem(&options.command))),
    }
    Ok(minicluster)
}

/// The program's name, as far as it can begin a name in Kubernetes.
fn stem(command: &[String]) -> String {
    let program = command.first().map(String::as_str).unwrap_or_default();
    let base = program.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let plain: String = base.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(STEM_MAX).collect();
    let plain = plain.trim_start_matches(|c: char| !c.is_ascii_lowercase()).trim_end_matches('-');
    if plain.is_empty() { "job".to_owned() } else { plain.to_owned() }
}

/// One word of a shell, quoted only where it must be. The pods read a command by the same rules.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { quote(text) }
}

/// What is asked for is also the most that is given: brokers that are squeezed by others slow all of them down.
fn resources(options: &SubmitOptions) -> Result<Option<ResourceRequirements>> {
    let (gpu, gpus) = match options.gpu.as_deref().and_then(|gpu| gpu.split_once('=')) {
        Some((name, number)) => (name, Some(number)),
        None => ("nvidia.com/gpu", options.gpu.as_deref()),
    };
    if gpus.is_some_and(|number| number.parse::<u32>().is_err()) {
        bail!("--gpu {} is no whole number of GPUs", options.gpu.as_deref().unwrap_or_default());
    }
    let mut all = BTreeMap::new();
    for (name, text) in [("cpu", options.cpu.as_deref()), ("memory", options.memory.as_deref()), (gpu, gpus)] {
        let Some(text) = text else { continue };
        text.parse::<Amount>().map_err(|error| anyhow!("{text:?} is no amount of {name}: {error}"))?;
        all.insert(name.to_owned(), Quantity(text.to_owned()));
    }
    let some = ResourceRequirements { limits: Some(all.clone()), requests: Some(all.clone()), claims: None };
    Ok((!all.is_empty()).then_some(some))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::minicluster::options::Verb;
    use clap::Parser;

    fn submit(line: &[&str]) -> Result<MiniCluster> {
        let start = ["bivouac", "minicluster", "submit", "--image", "app"];
        match Cli::try_parse_from(start.iter().chain(line))?.command {
            Command::MiniCluster(Verb::Submit(options)) => minicluster(&options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_flag_has_its_place() {
        let line = ["--size", "4", "--tasks", "8", "--cpu", "2", "--memory", "4Gi", "--gpu", "1", "--env", "A=b=c"];
        let rest = ["--pod-annotation", "x/y=z", "--", "/opt/bin/Lmp_gpu", "-in", "in file", "$HOME", "it's"];
        let made = submit(&[&line[..], &rest[..]].concat()).unwrap();
        let shown = serde_json::json!({"metadata": made.metadata, "spec": made.spec});
        let resources = serde_json::json!({"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"});
        assert_eq!(shown["metadata"]["generateName"], "lmp-gpu-");
        assert_eq!((made.spec.size, made.spec.tasks), (4, 8));
        let container = &shown["spec"]["containers"][0];
        assert_eq!(container["command"], r#"/opt/bin/Lmp_gpu -in 'in file' '$HOME' 'it'\''s'"#);
        assert_eq!(container["environment"]["A"], "b=c");
        assert_eq!((&container["resources"]["limits"], &container["resources"]["requests"]), (&resources, &resources));
        assert_eq!(shown["spec"]["pod"]["annotations"]["x/y"], "z");
        assert_eq!(shown["spec"]["logging"]["quiet"], true);
    }

    #[test]
    fn little_is_needed() {
        let made = submit(&["--size", "3", "--", "42"]).unwrap();
        assert_eq!(made.metadata.generate_name.as_deref(), Some("job-"));
        assert_eq!((made.spec.size, made.spec.tasks), (3, 3), "one task for each broker");
        assert_eq!((made.spec.pod, made.spec.containers[0].resources.clone()), (None, None));
        let named = submit(&["--name", "mine", "--gpu", "amd.com/gpu=2", "--", "true"]).unwrap();
        assert_eq!((named.metadata.name.as_deref(), named.metadata.generate_name), (Some("mine"), None));
        let limits = named.spec.containers[0].resources.clone().unwrap().limits.unwrap();
        assert_eq!(limits["amd.com/gpu"].0, "2");
    }

    #[test]
    fn a_made_cluster_can_work() {
        let made = submit(&["--", "sh", "-c", "echo \"$HOSTNAME\" | rev; exit 3"]).unwrap();
        let named = MiniCluster { metadata: ObjectMeta { name: Some("sh-1".into()), ..made.metadata }, ..made };
        assert_eq!(bivouac_miniclusters::faults::of(&named), Vec::<String>::new());
    }

    #[test]
    fn nonsense_is_refused_at_once() {
        for (line, words) in [
            (&["--cpu", "two", "--", "true"][..], "\"two\" is no amount of cpu"),
            (&["--gpu", "0.5", "--", "true"], "--gpu 0.5 is no whole number"),
            (&["--env", "A", "--", "true"], "NAME=VALUE"),
            (&["--size", "0", "--", "true"], "0 is not in"),
            (&[], "COMMAND"),
        ] {
            let error = submit(line).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
