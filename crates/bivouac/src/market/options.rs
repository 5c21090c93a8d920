// SPDX-License-Identifier: Apache-2.0
//! What `bivouac offers` and `bivouac clouds` can be told.

use std::path::PathBuf;

use bivouac_core::Money;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Clone, Debug, Args)]
pub struct OffersOptions {
    /// The GPU, in anybody's spelling, like H100 or "NVIDIA A100-SXM4-80GB"; several are alternatives
    #[arg(long, value_delimiter = ',')]
    pub gpu: Vec<String>,
    /// How many GPUs the machine has
    #[arg(long)]
    pub count: Option<u32>,
    /// The least memory of one GPU, in GiB
    #[arg(long, value_name = "GIB")]
    pub gpu_memory: Option<u16>,
    /// The most that the machine may cost an hour, in dollars
    #[arg(long, value_name = "DOLLARS")]
    pub max_price: Option<Money>,
    /// A region, a part of its name, or a part of the world: us, eu, asia, canada, australia
    #[arg(long)]
    pub region: Option<String>,
    /// Only what the cloud may take back
    #[arg(long, conflicts_with = "on_demand")]
    pub spot: bool,
    /// Only what stays
    #[arg(long)]
    pub on_demand: bool,
    /// A price list of your own; its prices count instead of those that the clouds tell
    #[arg(long, value_name = "FILE", env = "BIVOUAC_PRICES")]
    pub prices: Option<PathBuf>,
    /// How many to show; 0 shows all
    #[arg(long, default_value_t = 20)]
    pub limit: usize,
    /// The form of the output
    #[arg(short, long, default_value = "table")]
    pub output: Output,
    #[command(flatten)]
    pub ask: AskOptions,
}

/// Whom to ask, and how.
#[derive(Clone, Debug, Args)]
pub struct AskOptions {
    /// Only these clouds
    #[arg(long, value_delimiter = ',')]
    pub cloud: Vec<String>,
    /// A YAML file with a credential for each cloud; without it: variables like BIVOUAC_LAMBDA_KEY
    #[arg(long, value_name = "FILE", env = "BIVOUAC_CREDENTIALS")]
    pub credentials: Option<PathBuf>,
    /// Use the credentials of this GPUNodeClass of a cluster
    #[arg(long, value_name = "NAME", conflicts_with_all = ["credentials", "simulated"])]
    pub class: Option<String>,
    /// File that says which cluster has the class; otherwise KUBECONFIG, then ~/.kube/config
    #[arg(long, value_name = "FILE", requires = "class")]
    pub kubeconfig: Option<PathBuf>,
    /// Where the class's Secrets are that name no namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "bivouac-system", requires = "class")]
    pub operator_namespace: String,
    /// Ask the simulated clouds of `bivouac up`, and no others
    #[arg(long, conflicts_with = "credentials")]
    pub simulated: bool,
    /// Ask the clouds, even if they were asked a moment ago
    #[arg(long)]
    pub refresh: bool,
    /// Say nothing about the asking
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CloudsOptions {
    #[command(subcommand)]
    pub verb: Option<CloudsVerb>,
    #[command(flatten)]
    pub show: ShowOptions,
}

#[derive(Clone, Debug, Subcommand)]
pub enum CloudsVerb {
    /// Ask each cloud whether it can be reached and accepts the credential
    ///
    /// The exit code is 0 if all of them do, 1 if one does not, and 2 if there is no credential at all.
    Check(ShowOptions),
}

#[derive(Clone, Debug, Args)]
pub struct ShowOptions {
    /// The form of the output
    #[arg(short, long, default_value = "table")]
    pub output: Output,
    #[command(flatten)]
    pub ask: AskOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Table,
    Json,
    Yaml,
}
