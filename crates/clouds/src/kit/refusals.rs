// SPDX-License-Identifier: Apache-2.0
//! Every way of saying no means one thing.

use super::{Behaviour, Stage, Verdict, ensure};
use crate::fake::{Answer, Refused, Trouble};
use crate::fault::{Operation, Outcome};

pub const ALL: &[Behaviour] = &[
    Behaviour { name: "a-refused-launch-says-why", run: |stage| Box::pin(launches(stage)) },
    Behaviour { name: "a-refused-question-says-why", run: |stage| Box::pin(questions(stage)) },
    Behaviour { name: "a-retired-api-is-not-asked-in-vain", run: |stage| Box::pin(retired(stage)) },
    Behaviour { name: "empty-shelves-are-no-fault", run: |stage| Box::pin(empty_shelves(stage)) },
    Behaviour { name: "no-money-no-machine", run: |stage| Box::pin(no_money(stage)) },
];

/// Sends the refusal and wants the outcome.
async fn expect(stage: &Stage, on: Operation, refused: Refused, id: &str, right: impl Fn(Outcome) -> bool) -> Verdict {
    let order = stage.order(1).await?;
    stage.server.trouble(on, Trouble::Refuse(refused));
    match stage.ask(on, &order, id).await {
        Ok(()) => Err(format!("{refused:?} on {} passes for success", on.name())),
        Err(fault) => {
            ensure(right(fault.outcome), || format!("{refused:?} on {}: {fault}", on.name()))?;
            ensure(fault.operation == on, || {
                format!("{refused:?}: {} is told as {}", on.name(), fault.operation.name())
            })
        }
    }
}

async fn launches(stage: &Stage) -> Verdict {
    use Operation::Launch;
    expect(stage, Launch, Refused::NoCapacity, "", |outcome| outcome == Outcome::NoCapacity).await?;
    expect(stage, Launch, Refused::Quota, "", |outcome| outcome == Outcome::Quota).await?;
    expect(stage, Launch, Refused::Payment, "", |outcome| outcome == Outcome::Payment).await?;
    expect(stage, Launch, Refused::Unauthorized, "", |outcome| outcome == Outcome::Unauthorized).await?;
    expect(stage, Launch, Refused::Invalid, "", |outcome| outcome == Outcome::Invalid).await?;
    expect(stage, Launch, Refused::RateLimited, "", |outcome| matches!(outcome, Outcome::RateLimited { .. })).await?;
    let conflict = |outcome| matches!(outcome, Outcome::Conflict | Outcome::Ambiguous);
    expect(stage, Launch, Refused::Conflict, "", conflict).await?;
    expect(stage, Launch, Refused::Broken, "", |outcome| outcome == Outcome::Ambiguous).await?;
    let count = stage.server.economy(|economy| economy.rented.len());
    ensure(count == 0, || format!("refused launches made {count} machines"))
}

async fn questions(stage: &Stage) -> Verdict {
    let id = &stage.launched(9).await?.id;
    for on in [Operation::Offers, Operation::List, Operation::Describe, Operation::Terminate] {
        expect(stage, on, Refused::Unauthorized, id, |outcome| outcome == Outcome::Unauthorized).await?;
        expect(stage, on, Refused::Forbidden, id, |outcome| outcome == Outcome::Unauthorized).await?;
        expect(stage, on, Refused::RateLimited, id, |outcome| matches!(outcome, Outcome::RateLimited { .. })).await?;
        expect(stage, on, Refused::Broken, id, |outcome| outcome == Outcome::Transient).await?;
    }
    expect(stage, Operation::Describe, Refused::NotFound, id, |outcome| outcome == Outcome::NotFound).await
}

async fn retired(stage: &Stage) -> Verdict {
    stage.server.trouble(Operation::List, Trouble::Instead(Answer::empty(410)));
    match stage.cloud.list(&Stage::owner()).await {
        Ok(_) => Err("a retired API passes for an empty list".to_owned()),
        Err(fault) => ensure(fault.outcome == Outcome::Invalid && fault.says.contains("retired"), || fault.to_string()),
    }
}

async fn empty_shelves(stage: &Stage) -> Verdict {
    let order = stage.order(1).await?;
    stage.server.economy(|economy| economy.goods.iter_mut().for_each(|good| good.stock = 0));
    let offers = stage.cloud.offers().await.map_err(|fault| fault.to_string())?;
    ensure(offers.iter().all(|offer| offer.sold_out), || "sold out, and still offered".to_owned())?;
    match stage.cloud.launch(&order).await {
        Ok(machine) => Err(format!("nothing is left, and {machine:?} was launched")),
        Err(fault) => ensure(fault.outcome == Outcome::NoCapacity, || fault.to_string()),
    }
}

async fn no_money(stage: &Stage) -> Verdict {
    let order = stage.order(1).await?;
    stage.server.economy(|economy| economy.balance = bivouac_core::Money::ZERO);
    match stage.cloud.launch(&order).await {
        Ok(machine) => Err(format!("no money, and {machine:?} was launched")),
        Err(fault) => ensure(fault.outcome == Outcome::Payment, || fault.to_string()),
    }
}
