// SPDX-License-Identifier: Apache-2.0
//! What a client makes of one answer of its cloud.

use bivouac_clouds::fake::{Answer, Trouble};
use bivouac_clouds::kit::Stage;
use bivouac_clouds::{Fault, Machine, Operation, Outcome, State, find};
use serde_json::Value;

/// Runs on a fresh fake, in virtual time.
pub fn on_stage<T>(cloud: &str, play: impl AsyncFnOnce(&Stage) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let stage = Stage::of(find(cloud).unwrap()).unwrap();
        play(&stage).await
    })
}

/// The fault of a launch that is answered like this.
pub fn refused_launch(cloud: &str, status: u16, body: &Value) -> Fault {
    on_stage(cloud, async |stage| {
        let order = stage.order(1).await.unwrap();
        stage.server.trouble(Operation::Launch, Trouble::Instead(Answer::json(status, body)));
        stage.cloud.launch(&order).await.unwrap_err()
    })
}

pub fn outcome_of_launch(cloud: &str, status: u16, body: &Value) -> Outcome {
    refused_launch(cloud, status, body).outcome
}

/// A machine that the cloud describes like this.
pub fn described(cloud: &str, id: &str, body: &Value) -> Machine {
    on_stage(cloud, async |stage| {
        stage.server.trouble(Operation::Describe, Trouble::Instead(Answer::json(200, body)));
        stage.cloud.describe(id).await.unwrap()
    })
}

pub fn state_of(cloud: &str, id: &str, body: &Value) -> State {
    described(cloud, id, body).state
}
