// SPDX-License-Identifier: Apache-2.0
//! What a container writes, copied to our own output until it ends.

use std::time::Duration;

use anyhow::Result;
use futures::{AsyncReadExt, io::AsyncBufRead};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::LogParams;

use super::access::Place;
use crate::print;

/// A stream may break off, by a node or a server that restarts. Then it is opened again.
const AGAIN: Duration = Duration::from_secs(1);

/// Copies everything that the container has written and will write. Gives its exit code, if it has one and its pod is
/// still there to tell.
pub async fn follow(place: &Place, pod: &str, container: &str) -> Result<Option<i32>> {
    let mut copied = 0;
    loop {
        // Asked for before the text is: what is missing from the text now comes with the next round.
        let state = place.pods().get_opt(pod).await.map_err(|error| place.explain(&error))?;
        let ended = state.as_ref().map(|pod| status(pod, container).and_then(exit_code));
        let params = LogParams { container: Some(container.to_owned()), follow: true, ..LogParams::default() };
        match place.pods().log_stream(pod, &params).await {
            Ok(stream) => copied = copied.max(copy(stream, copied).await?),
            // Its text is gone with it.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(ended.flatten()),
            Err(error) => return Err(place.explain(&error)),
        }
        match ended {
            None => return Ok(None),
            Some(Some(code)) => return Ok(Some(code)),
            Some(None) => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// What the container has written so far.
pub async fn once(place: &Place, pod: &str, container: &str) -> Result<()> {
    let params = LogParams { container: Some(container.to_owned()), ..LogParams::default() };
    let stream = place.pods().log_stream(pod, &params).await.map_err(|error| place.explain(&error))?;
    copy(stream, 0).await?;
    Ok(())
}

/// Writes what comes after the first `known` bytes, at once. Gives the number of all bytes.
async fn copy(stream: impl AsyncBufRead, known: usize) -> Result<usize> {
    let mut stream = std::pin::pin!(stream);
    let mut buffer = vec![0; 16 * 1024];
    let mut seen = 0;
    loop {
        // A connection that breaks off is an end like any other here.
        let read = stream.read(&mut buffer).await.unwrap_or_default();
        if read == 0 {
            return Ok(seen);
        }
        let fresh = buffer.get(known.saturating_sub(seen).min(read)..read).unwrap_or_default();
        seen += read;
        print::write(fresh)?;
    }
}

pub fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.iter().find(|one| one.name == container)
}

/// Whether the container runs or has run.
pub fn has_begun(status: &ContainerStatus) -> bool {
    let state = status.state.clone().unwrap_or_default();
    status.restart_count > 0 || state.running.is_some() || state.terminated.is_some()
}

/// How the container ended. One that is about to start again has not.
pub fn exit_code(status: &ContainerStatus) -> Option<i32> {
    Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
}
