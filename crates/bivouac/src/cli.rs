// SPDX-License-Identifier: Apache-2.0
//! The command line. Everything a chart sets can also come from the environment.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::SignedDuration;

use crate::market::options::{CloudsOptions, OffersOptions};
use crate::minicluster::options::Verb;

/// Ephemeral, multi-cloud accelerated computing on Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "bivouac", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start everything on this machine with nothing installed, and show it live
    ///
    /// A Kubernetes API server, a simulated cluster, all controllers and a first camp, in one process. For trying things, not
    /// for production. kubectl works beside it, with the kubeconfig in the data directory.
    ///
    /// q or Ctrl-C stops it. The state stays, and the next `up` goes on with it.
    Up(UpOptions),
    /// Stop what `bivouac up` runs; its state stays
    Down(PlaceOptions),
    /// Say whether `bivouac up` runs, since when, and what is in it
    ///
    /// The exit code is 0 if it runs and 3 if it does not.
    Status(StatusOptions),
    /// Delete the state of `bivouac up`, after asking
    ///
    /// Every object that is kept in the data directory goes, and the directory too if nothing else is in it.
    Reset(ResetOptions),
    /// Run the controllers against a Kubernetes cluster
    Operator(OperatorOptions),
    /// Play scenarios in virtual time, with everything that can go wrong going wrong
    ///
    /// One seed decides everything, so what was found can be played again. Without more options a scenario is played with the
    /// random faults of its seed. The exit code is 1 if a guarantee was broken.
    Simulate(SimulateOptions),
    /// Run commands on MiniClusters, and look after them
    #[command(subcommand, name = "minicluster")]
    MiniCluster(Verb),
    /// Show what clouds sell now, cheapest first
    ///
    /// Asks every cloud that there is a credential for, all at once, and remembers the answers for five minutes. Prices that
    /// nobody should believe are left out and counted. Without any credential it shows the prices that come with bivouac.
    Offers(OffersOptions),
    /// Show which clouds can be bought from, and check the credentials
    Clouds(CloudsOptions),
    /// Print the custom resource definitions, ready for `kubectl apply --server-side -f -`
    Crds(PrintOptions),
    /// Print the rights that the operator needs, and nothing more than that
    Rbac(RbacOptions),
    /// Print the admission policies that the API server enforces for us
    Policies(PolicyOptions),
    /// Print the version
    Version(PrintOptions),
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
}

#[derive(Debug, Args)]
pub struct UpOptions {
    #[command(flatten)]
    pub place: PlaceOptions,
    /// Port on 127.0.0.1; 0 takes any free one. Without it: that of the last start, at first 6551
    #[arg(long, env = "BIVOUAC_PORT")]
    pub port: Option<u16>,
    /// Leave out the first camp, now and at later starts
    #[arg(long)]
    pub empty: bool,
    /// Run in the background, and return as soon as it is ready
    #[arg(long)]
    pub detach: bool,
    /// Show nothing unless something is wrong
    #[arg(short, long)]
    pub quiet: bool,
    /// What goes into the log file of the data directory, for example `info` or `info,bivouac_tenancy=debug`
    #[arg(long = "log", env = "BIVOUAC_LOG", default_value = "info")]
    pub log_filter: String,
}

#[derive(Clone, Debug, Args)]
pub struct PlaceOptions {
    /// Where the state is kept. Without it: $XDG_DATA_HOME/bivouac, else ~/.local/share/bivouac
    #[arg(long, env = "BIVOUAC_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct StatusOptions {
    #[command(flatten)]
    pub place: PlaceOptions,
    /// The form of the output
    #[arg(short, long, default_value = "table")]
    pub output: StatusOutput,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatusOutput {
    Table,
    Json,
}

#[derive(Debug, Args)]
pub struct ResetOptions {
    #[command(flatten)]
    pub place: PlaceOptions,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct OperatorOptions {
    /// Controllers to run: `*` for all, `name` to add one, `-name` to leave one out
    #[arg(long, env = "BIVOUAC_CONTROLLERS", default_value = "*", allow_hyphen_values = true)]
    pub controllers: String,
    /// File that says which cluster; otherwise KUBECONFIG, then ~/.kube/config, then the pod's own account
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,
    /// Where health, readiness and metrics are served
    #[arg(long, env = "BIVOUAC_ADMIN_ADDRESS", default_value = "0.0.0.0:8081")]
    pub admin_address: SocketAddr,
    #[command(flatten)]
    pub election: ElectionOptions,
    #[command(flatten)]
    pub log: LogOptions,
    #[command(flatten)]
    pub each: ControllerOptions,
}

/// What single controllers can be told.
#[derive(Clone, Debug, Args)]
pub struct ControllerOptions {
    #[command(flatten)]
    pub tenancy: TenancyOptions,
    #[command(flatten)]
    pub miniclusters: MiniClusterOptions,
}

impl Default for ControllerOptions {
    /// As without any flag.
    fn default() -> Self {
        let (tenancy, miniclusters) = (bivouac_tenancy::Settings::default(), bivouac_miniclusters::Settings::default());
        Self {
            tenancy: TenancyOptions { tenancy_managed_by: tenancy.managed_by, tenancy_part_of: tenancy.part_of },
            miniclusters: MiniClusterOptions {
                gang: miniclusters.gang,
                gang_hold: SignedDuration::from_secs(60),
                gang_then: GangThen::Wait,
                label_all_pods: miniclusters.label_all_pods,
                view_by_image: miniclusters.view_by_image,
            },
        }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Leader election")]
pub struct ElectionOptions {
    /// Write only while holding a Lease, so that several replicas can run
    #[arg(long, env = "BIVOUAC_LEADER_ELECT", default_value_t = true, action = clap::ArgAction::Set)]
    pub leader_elect: bool,
    /// Namespace of the Lease
    #[arg(long, env = "POD_NAMESPACE", default_value = "bivouac-system")]
    pub lease_namespace: String,
    /// Name of the Lease
    #[arg(long, env = "BIVOUAC_LEASE_NAME", default_value = "bivouac")]
    pub lease_name: String,
    /// Name of this process among the replicas; otherwise the pod's name or the host's
    #[arg(long, env = "POD_NAME")]
    pub identity: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Log")]
pub struct LogOptions {
    /// What a log line looks like
    #[arg(long, env = "BIVOUAC_LOG_FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// What is logged, for example `info` or `info,bivouac_tenancy=debug`
    #[arg(long = "log", env = "BIVOUAC_LOG", default_value = "info")]
    pub log_filter: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Tenancy")]
pub struct TenancyOptions {
    /// Value of the label app.kubernetes.io/managed-by on what Workspaces own
    #[arg(long, env = "BIVOUAC_TENANCY_MANAGED_BY", default_value = "otterscale-operator")]
    pub tenancy_managed_by: String,
    /// Value of the label app.kubernetes.io/part-of on what Workspaces own
    #[arg(long, env = "BIVOUAC_TENANCY_PART_OF", default_value = "otterscale")]
    pub tenancy_part_of: String,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "MiniClusters")]
pub struct MiniClusterOptions {
    /// Start every MiniCluster all or nothing: its Job is held back until the nodes have room for all its pods
    ///
    /// A single MiniCluster asks for it with the annotation bivouac.dev/gang: "true", or against it with "false".
    #[arg(long, env = "BIVOUAC_GANG")]
    pub gang: bool,
    /// How long a MiniCluster is held back for want of room before --gang-then decides
    #[arg(long, env = "BIVOUAC_GANG_HOLD", value_name = "DURATION", default_value = "60s")]
    pub gang_hold: SignedDuration,
    /// What becomes of it then
    #[arg(long, env = "BIVOUAC_GANG_THEN", default_value = "wait")]
    pub gang_then: GangThen,
    /// Set the label job-index on every pod, not only where something selects on it
    #[arg(long, env = "BIVOUAC_LABEL_ALL_PODS")]
    pub label_all_pods: bool,
    /// Mount the image with Flux into the pods instead of copying from it
    ///
    /// Kubelets and container runtimes must know image volumes. A single MiniCluster chooses with the annotation
    /// bivouac.dev/view: "image" or "copy".
    #[arg(long, env = "BIVOUAC_VIEW_BY_IMAGE")]
    pub view_by_image: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GangThen {
    /// It waits on
    Wait,
    /// Its pods are made all the same, for a cluster autoscaler to see
    Release,
}

#[derive(Debug, Args)]
pub struct SimulateOptions {
    /// Scenarios by name, as `--list` shows them, with `*` at the end for many; or files
    #[arg(value_name = "SCENARIO", required_unless_present = "list")]
    pub scenarios: Vec<String>,
    /// Show the scenarios there are
    #[arg(long)]
    pub list: bool,
    /// The seed that decides everything
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How many seeds, from the first one on
    #[arg(long)]
    pub seeds: Option<u64>,
    /// Go on, seed after seed, until something is wrong
    #[arg(long)]
    pub until_failure: bool,
    /// What goes wrong
    #[arg(long, default_value = "random")]
    pub mode: SimulateMode,
    /// Exactly these faults, separated by commas, as a failure prints them
    #[arg(long, conflicts_with_all = ["mode", "undisturbed"])]
    pub faults: Option<String>,
    /// No faults at all
    #[arg(long)]
    pub undisturbed: bool,
    /// Print every call of the operator, with its virtual second: how to read a failure
    #[arg(long)]
    pub calls: bool,
    /// Other controllers than those of the scenario, as for `bivouac operator`
    #[arg(long, allow_hyphen_values = true)]
    pub controllers: Option<String>,
    /// How many processes play at the same time
    #[arg(long, default_value_t = 1)]
    pub jobs: u32,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// Ways to disturb a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SimulateMode {
    /// Random faults, several at once, decided by the seed
    Random,
    /// The operator dies before and after each of its calls
    Crashes,
    /// Each call is answered with each kind of error, done or not done
    Errors,
    /// All watches lag behind from each event on
    Stale,
    /// What happens after each event is never seen, only what came of it
    Unobserved,
}

impl SimulateMode {
    /// As `bivouac-sim` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Crashes => "crashes",
            Self::Errors => "errors",
            Self::Stale => "stale",
            Self::Unobserved => "unobserved",
        }
    }
}

#[derive(Debug, Args)]
pub struct PrintOptions {
    /// The form of the output
    #[arg(short, long, default_value = "yaml")]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct RbacOptions {
    #[command(flatten)]
    pub print: PrintOptions,
    /// Controllers to print the rights for
    #[arg(long, default_value = "*", allow_hyphen_values = true)]
    pub controllers: String,
    /// Namespace of the operator
    #[arg(long, default_value = "bivouac-system")]
    pub namespace: String,
    /// ServiceAccount of the operator
    #[arg(long, default_value = "bivouac")]
    pub service_account: String,
}

#[derive(Debug, Args)]
pub struct PolicyOptions {
    #[command(flatten)]
    pub print: PrintOptions,
    /// Namespace of the operator
    #[arg(long, default_value = "bivouac-system")]
    pub namespace: String,
    /// ServiceAccount of the operator
    #[arg(long, default_value = "bivouac")]
    pub service_account: String,
    /// Leave out MutatingAdmissionPolicies, for clusters older than Kubernetes 1.36
    #[arg(long)]
    pub without_mutating: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Yaml,
    Json,
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
