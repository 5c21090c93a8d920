// SPDX-License-Identifier: Apache-2.0
//! The flags of `bivouac minicluster`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command on a new MiniCluster, and show its output until it is done
    ///
    /// The exit code is that of the command. What the cluster waits for goes to stderr, the output of the command to stdout.
    /// Ctrl-C leaves the cluster running, and says how to find it again.
    ///
    /// The words after -- reach the program as they are. For variables and pipes of the pod, start a shell there:
    /// -- sh -c 'echo $HOSTNAME | rev'
    Submit(SubmitOptions),
    /// Show the output of a broker: of the lead, unless --rank says otherwise
    Logs(LogsOptions),
    /// Open a shell beside the lead broker, where `flux` talks to the cluster; needs kubectl
    Attach(AttachOptions),
    /// Show MiniClusters, how they stand and what they wait for
    List(ListOptions),
    /// Delete MiniClusters, with their pods and all that belongs to them
    Delete(DeleteOptions),
    /// Print all that would be made for a MiniCluster, without any Kubernetes cluster
    ///
    /// The same input always gives the same output, so the brokers' key is a well-known one unless --new-certificate is given. The
    /// exit code is 1 if the MiniCluster cannot work; the reasons are told.
    Render(RenderOptions),
}

/// Which Kubernetes cluster, and where in it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Where")]
pub struct Access {
    /// File that says which cluster; otherwise KUBECONFIG, then ~/.kube/config, then the pod's own account
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,
    /// Entry of the kubeconfig; otherwise its current one
    #[arg(long)]
    pub context: Option<String>,
    /// Namespace; otherwise that of the kubeconfig
    #[arg(short, long)]
    pub namespace: Option<String>,
}

#[derive(Debug, Args)]
pub struct SubmitOptions {
    /// Image of every pod. It needs bash; Flux is brought along
    #[arg(long)]
    pub image: String,
    /// Brokers, one pod each
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..))]
    pub size: i32,
    /// Tasks of the command in sum; otherwise one for each broker
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    pub tasks: Option<i32>,
    /// Name of the MiniCluster; otherwise a new one is made from the command
    #[arg(long)]
    pub name: Option<String>,
    /// CPUs of each pod, for example 4 or 500m
    #[arg(long)]
    pub cpu: Option<String>,
    /// Memory of each pod, for example 8Gi
    #[arg(long)]
    pub memory: Option<String>,
    /// GPUs of each pod: a number of nvidia.com/gpu, or NAME=NUMBER for others
    #[arg(long)]
    pub gpu: Option<String>,
    /// Environment variable of the command; can be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub env: Vec<(String, String)>,
    /// Annotation of the pods; can be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub pod_annotation: Vec<(String, String)>,
    /// Show what the brokers say, too
    #[arg(short, long)]
    pub verbose: bool,
    /// Wait for the end, but show no output
    #[arg(long, conflicts_with = "detach")]
    pub wait: bool,
    /// Return as soon as the MiniCluster is made
    #[arg(long)]
    pub detach: bool,
    /// Only print the MiniCluster
    #[arg(long, require_equals = true, num_args = 0..=1, default_missing_value = "client")]
    pub dry_run: Option<DryRun>,
    /// What to run
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// Nobody is asked
    Client,
}

#[derive(Debug, Args)]
pub struct LogsOptions {
    pub name: String,
    /// Go on until the broker ends, and wait for it if it has not begun
    #[arg(short, long)]
    pub follow: bool,
    /// Which broker
    #[arg(long, default_value_t = 0)]
    pub rank: u32,
    #[command(flatten)]
    pub access: Access,
}

#[derive(Debug, Args)]
pub struct AttachOptions {
    pub name: String,
    /// Only print the command that does it
    #[arg(long)]
    pub print: bool,
    #[command(flatten)]
    pub access: Access,
}

#[derive(Debug, Args)]
pub struct ListOptions {
    /// In all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// The form of the output
    #[arg(short, long, default_value = "table")]
    pub output: ListOutput,
    #[command(flatten)]
    pub access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListOutput {
    Table,
    Json,
}

#[derive(Debug, Args)]
pub struct DeleteOptions {
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Return when their pods have ended
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub access: Access,
}

#[derive(Debug, Args)]
pub struct RenderOptions {
    #[command(flatten)]
    pub source: Source,
    /// Namespace for MiniClusters that name none
    #[arg(short, long, default_value = "default")]
    pub namespace: String,
    /// Make a new key for the brokers, good for real use
    #[arg(long)]
    pub new_certificate: bool,
}

/// One file, named by itself or as kubectl wants it.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Source {
    /// File with MiniClusters, in YAML or JSON; - reads stdin
    #[arg(value_name = "FILE")]
    plain: Option<PathBuf>,
    /// The same, as kubectl takes it
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Source {
    pub fn path(&self) -> &Path {
        // One of them is always there.
        self.plain.as_deref().or(self.file.as_deref()).unwrap_or(Path::new("-"))
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it must look like NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Parser, error::ErrorKind};

    use super::{Path, Verb};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        verb: Verb,
    }

    #[test]
    fn a_file_to_render_is_named_by_itself_or_as_for_kubectl() {
        let line = |words: &[&str]| Line::try_parse_from([&["bivouac", "render"], words].concat());
        for words in [&["a.yaml"][..], &["-f", "a.yaml"], &["--file", "a.yaml"], &["-n", "lab", "a.yaml"]] {
            let Verb::Render(options) = line(words).unwrap().verb else { panic!("{words:?}") };
            assert_eq!(options.source.path(), Path::new("a.yaml"), "{words:?}");
        }
        assert_eq!(line(&[]).unwrap_err().kind(), ErrorKind::MissingRequiredArgument);
        assert_eq!(line(&["a.yaml", "-f", "b.yaml"]).unwrap_err().kind(), ErrorKind::ArgumentConflict);
    }
}
