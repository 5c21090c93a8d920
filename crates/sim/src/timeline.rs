// SPDX-License-Identifier: Apache-2.0
//! What people do in a scenario.

use std::time::Duration;

use anyhow::Result;
use bivouac_apiserver::Speaker;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    scenario::{Scenario, Step},
    world,
};

const TRY_AGAIN: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(1_200);

/// Plays the steps in time. `restart` is called for the operator.
pub async fn play(scenario: &Scenario, server: &Speaker, start: Instant, restart: impl AsyncFn()) -> Result<()> {
    for step in &scenario.timeline {
        tokio::time::sleep_until(start + Duration::from_secs(u64::from(step.at))).await;
        if step.restart {
            restart().await;
        }
        for n in 1..=step.repeat {
            patiently(step, server, n).await?;
        }
    }
    Ok(())
}

/// People try again when what they want to touch is not there yet: the operator may be late.
async fn patiently(step: &Step, server: &Speaker, n: u32) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        match act(step, server, n).await {
            Err(_) if Instant::now() < until => tokio::time::sleep(TRY_AGAIN).await,
            outcome => return outcome,
        }
    }
}

async fn act(step: &Step, server: &Speaker, n: u32) -> Result<()> {
    if let Some(object) = &step.apply {
        world::apply(server, &numbered(object, n)).await?;
    }
    if let Some(patch) = &step.patch {
        world::patch(server, &patch.of.numbered(n), &numbered(&patch.with, n)).await?;
    }
    if let Some(of) = &step.delete {
        world::delete(server, &of.numbered(n)).await?;
    }
    Ok(())
}

/// The same with `{n}` replaced in every text.
pub fn numbered(value: &Value, n: u32) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("{n}", &n.to_string())),
        Value::Array(items) => items.iter().map(|item| numbered(item, n)).collect(),
        Value::Object(fields) => {
            let put = |text: &str| text.replace("{n}", &n.to_string());
            fields.iter().map(|(key, value)| (put(key), numbered(value, n))).collect()
        }
        other => other.clone(),
    }
}
