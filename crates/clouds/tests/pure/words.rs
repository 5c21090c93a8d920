// SPDX-License-Identifier: Apache-2.0
//! What tests of single clouds share.

use bivouac_clouds::fake::{Answer, Trouble};
use bivouac_clouds::kit::Stage;
use bivouac_clouds::{Fault, Operation, Outcome};
use bivouac_market::Listing;
use serde_json::Value;

use crate::told::on_stage;

/// What the one and last launch was asked with, and that it went there.
pub fn asks(stage: &Stage, path: &str) -> Value {
    let (question, _) = stage.server.asked(Operation::Launch).pop().unwrap();
    assert_eq!(question.path, path);
    question.body
}

/// What becomes of a question that is answered like this.
pub fn refused(cloud: &str, on: Operation, status: u16, body: &Value) -> Outcome {
    let fault: Fault = on_stage(cloud, async |stage| {
        let offers = stage.cloud.offers().await.unwrap();
        let offer: &Listing = offers.iter().find(|one| !one.sold_out).unwrap();
        let order = stage.order_of(offer, 1);
        stage.server.trouble(on, Trouble::Instead(Answer::json(status, body)));
        let asked = match on {
            Operation::Offers => stage.cloud.offers().await.map(drop),
            Operation::Launch => stage.cloud.launch(&order).await.map(drop),
            Operation::Describe => stage.cloud.describe("1234567").await.map(drop),
            Operation::List => stage.cloud.list(&Stage::owner()).await.map(drop),
            Operation::Terminate => stage.cloud.terminate("1234567").await,
            Operation::Verify => stage.cloud.verify().await.map(drop),
        };
        asked.unwrap_err()
    });
    assert_eq!((fault.operation, fault.status), (on, Some(status)));
    fault.outcome
}
