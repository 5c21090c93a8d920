// SPDX-License-Identifier: Apache-2.0
//! `bivouac minicluster delete`.

use std::process::ExitCode;

use anyhow::Result;
use kube::{
    ResourceExt,
    api::{DeleteParams, Preconditions},
    runtime::wait::{await_condition, conditions},
};

use super::{access::Place, options::DeleteOptions};

pub async fn run(options: &DeleteOptions) -> Result<ExitCode> {
    let place = Place::reach(&options.access).await?;
    let mut failed = false;
    for name in &options.names {
        // One that is not there is no reason to leave the others.
        if let Err(error) = one(&place, name, options.wait).await {
            eprintln!("bivouac: {error:#}");
            failed = true;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn one(place: &Place, name: &str, wait: bool) -> Result<()> {
    let uid = place.get(name).await?.uid().unwrap_or_default();
    // One that took its name since is somebody else's.
    let preconditions = Some(Preconditions { uid: Some(uid.clone()), resource_version: None });
    let params = if wait { DeleteParams::foreground() } else { DeleteParams::background() };
    let params = DeleteParams { preconditions, ..params };
    place.miniclusters().delete(name, &params).await.map_err(|error| place.explain(&error))?;
    if wait {
        eprintln!("{name}: waiting for its pods to end");
        await_condition(place.miniclusters(), name, conditions::is_deleted(&uid)).await?;
    }
    eprintln!("{name}: {}", if wait { "gone" } else { "is being deleted, with its pods" });
    Ok(())
}
