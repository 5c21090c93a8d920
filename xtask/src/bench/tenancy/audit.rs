// SPDX-License-Identifier: Apache-2.0
//! What the API server's audit log says about the operator.

use std::{path::Path, time::Duration};

use anyhow::{Result, bail};
use serde::Deserialize;

/// Requests of the operator, without its Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    pub writes: usize,
    /// Gets and lists; a watch is a connection, not a request.
    pub reads: usize,
}

impl Requests {
    pub fn since(&self, before: &Requests) -> Requests {
        Requests { writes: self.writes - before.writes, reads: self.reads - before.reads }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    user_agent: Option<String>,
}

pub fn count(log: &Path) -> Result<Requests> {
    let mut requests = Requests { writes: 0, reads: 0 };
    for line in std::fs::read_to_string(log)?.lines() {
        // The last line may be half written.
        let Ok(entry) = serde_json::from_str::<Entry>(line) else { continue };
        let ours = entry.user_agent.is_some_and(|agent| agent.starts_with("bivouac/"));
        if !ours || entry.stage != "ResponseComplete" || entry.uri.contains("/leases") {
            continue;
        }
        match entry.verb.as_str() {
            "watch" => {}
            "get" | "list" => requests.reads += 1,
            _ => requests.writes += 1,
        }
    }
    Ok(requests)
}

/// The counts, once they stand still: events follow the status by a moment.
pub async fn settled(log: &Path) -> Result<Requests> {
    let mut before = count(log)?;
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let now = count(log)?;
        if now == before {
            return Ok(now);
        }
        before = now;
    }
    bail!("the operator never stopped sending requests")
}
