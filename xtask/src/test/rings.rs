// SPDX-License-Identifier: Apache-2.0
//! The four rings of tests, from pure to real.

use anyhow::{Context, Result};
use bivouac_testenv::{Component, Options, TestCluster, cluster, components};

use super::nextest;
use super::tally::Tally;
use crate::repo;

/// Ring 1: everything that needs no cluster.
pub fn pure() -> Result<Tally> {
    nextest::run("not (binary(/^real/) or binary(/^embedded/))", &[])
}

/// Ring 2: the test programs whose name begins with `embedded`, on the embedded API server in their own process.
pub fn embedded() -> Result<Tally> {
    // On a new machine it takes longer to build than a test may run.
    components::ensure(&[Component::Kubectl]).context("the tests that use kubectl cannot run")?;
    nextest::run("binary(/^embedded/)", &[])
}

/// Ring 4: the test programs whose name begins with `real`, against one cluster of real servers.
pub fn real() -> Result<Tally> {
    components::ensure(&Component::ALL).context("the tests with real servers cannot run")?;
    nextest::build()?;
    let supervisor = repo::programs()?.join("testenv");
    let runtime = tokio::runtime::Runtime::new()?;
    // The supervisor is the fresh one beside this program.
    let cluster = runtime.block_on(TestCluster::start(Options::default()))?;
    let tally = nextest::run(
        "binary(/^real/)",
        &[(cluster::KUBECONFIG_ENV, cluster.kubeconfig()), ("BIVOUAC_TESTENV_BIN", &supervisor)],
    );
    drop(cluster);
    tally
}
