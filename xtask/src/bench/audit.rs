// SPDX-License-Identifier: Apache-2.0
//! What the API server's audit log says about the operator.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::{Result, bail};
use serde::Deserialize;

/// Requests of the operator by verb, without its Lease. A watch is a connection, not a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests(pub BTreeMap<String, usize>);

impl Requests {
    pub fn since(&self, before: &Self) -> Self {
        let more = |(verb, count): (&String, &usize)| (verb.clone(), count - before.0.get(verb).unwrap_or(&0));
        Self(self.0.iter().map(more).collect())
    }

    pub fn all(&self) -> usize {
        self.0.values().sum()
    }

    /// Gets and lists.
    pub fn reads(&self) -> usize {
        ["get", "list"].iter().filter_map(|verb| self.0.get(*verb)).sum()
    }

    pub fn writes(&self) -> usize {
        self.all() - self.reads()
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
    let mut requests = Requests::default();
    for line in std::fs::read_to_string(log)?.lines() {
        // The last line may be half written.
        let Ok(entry) = serde_json::from_str::<Entry>(line) else { continue };
        let ours = entry.user_agent.is_some_and(|agent| agent.starts_with("bivouac/"));
        if !ours || entry.stage != "ResponseComplete" || entry.uri.contains("/leases") {
            continue;
        }
        if entry.verb != "watch" {
            *requests.0.entry(entry.verb).or_default() += 1;
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
