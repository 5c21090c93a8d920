// SPDX-License-Identifier: Apache-2.0
//! `bivouac minicluster logs`: what a broker wrote.

use std::process::ExitCode;

use anyhow::{Result, bail};
use kube::{ResourceExt, api::ListParams};

use super::{access::Place, follow, list::row, options::LogsOptions, output};

pub async fn run(options: &LogsOptions) -> Result<ExitCode> {
    let place = Place::reach(&options.access).await?;
    let (name, rank) = (&options.name, options.rank);
    let object = place.get(name).await?;
    if rank >= u32::try_from(object.spec.size).unwrap_or_default() {
        bail!("{name} has {} brokers; the last rank is {}", object.spec.size, object.spec.size - 1);
    }
    if options.follow {
        let pod = follow::begun(&place, name, rank).await?;
        output::follow(&place, &pod, name).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(pod) = newest(&place, name, rank).await? else {
        bail!("{name} has no pod of rank {rank} now: {}", row(&object).message);
    };
    output::once(&place, &pod, name).await?;
    Ok(ExitCode::SUCCESS)
}

/// The name of the pod of a rank. A lost one may still be there beside the new one.
pub async fn newest(place: &Place, name: &str, rank: u32) -> Result<Option<String>> {
    let labels = format!("job-name={name},{}={rank}", follow::RANK);
    let pods = place.pods().list(&ListParams::default().labels(&labels)).await;
    let pods = pods.map_err(|error| place.explain(&error))?.items;
    Ok(pods.into_iter().max_by_key(ResourceExt::creation_timestamp).map(|pod| pod.name_any()))
}
