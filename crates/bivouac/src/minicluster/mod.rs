// SPDX-License-Identifier: Apache-2.0
//! `bivouac minicluster`: what people do with MiniClusters, one file per verb. [`access`] finds the cluster and has the
//! words for trouble, [`follow`] watches one MiniCluster to its end, [`output`] copies what a pod writes.

mod access;
mod attach;
mod delete;
mod follow;
mod list;
mod logs;
pub mod options;
mod output;
pub mod render;
pub mod submit;

use std::process::ExitCode;

use anyhow::Result;
use options::Verb;

#[tokio::main(flavor = "current_thread")]
pub async fn run(verb: &Verb) -> Result<ExitCode> {
    match verb {
        Verb::Submit(options) => submit::run(options).await,
        Verb::Logs(options) => logs::run(options).await,
        Verb::Attach(options) => attach::run(options).await,
        Verb::List(options) => list::run(options).await,
        Verb::Delete(options) => delete::run(options).await,
        Verb::Render(options) => render::run(options),
    }
}
