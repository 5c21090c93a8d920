// SPDX-License-Identifier: Apache-2.0
//! Answers that are not true, not whole, or not there.

use std::time::Duration;

use super::{Behaviour, Stage, Verdict, ensure};
use crate::cloud::State;
use crate::fake::Trouble;
use crate::fault::{Operation, Outcome};

pub const ALL: &[Behaviour] = &[
    Behaviour { name: "a-launch-in-doubt-is-looked-for", run: |stage| Box::pin(in_doubt(stage)) },
    Behaviour { name: "a-launch-that-never-left-is-no-doubt", run: |stage| Box::pin(never_left(stage)) },
    Behaviour { name: "a-launch-that-came-to-nothing-is-abandoned", run: |stage| Box::pin(abandoned(stage)) },
    Behaviour { name: "half-a-listing-is-none", run: |stage| Box::pin(half_a_listing(stage)) },
    Behaviour { name: "nonsense-is-a-fault", run: |stage| Box::pin(nonsense(stage)) },
    Behaviour { name: "silence-ends", run: |stage| Box::pin(silence(stage)) },
    Behaviour { name: "a-late-listing-is-believed-later", run: |stage| Box::pin(late_listing(stage)) },
    Behaviour { name: "a-late-end-is-seen-as-ending", run: |stage| Box::pin(late_end(stage)) },
    Behaviour { name: "paging-that-goes-round-ends", run: |stage| Box::pin(round(stage)) },
];

/// Whatever the answer was like, the money may be spent: nobody tries again, and the machine can be found.
async fn in_doubt(stage: &Stage) -> Verdict {
    let troubles = [
        Trouble::DoneButRefused(500),
        Trouble::DoneButRefused(502),
        Trouble::DoneButRefused(503),
        Trouble::DoneButRefused(504),
        Trouble::DoneButLost,
        Trouble::DoneButSilent,
        Trouble::Truncated,
        Trouble::WrongTypes,
        Trouble::Empty,
        Trouble::Html(200),
    ];
    let offer = stage.offer().await?;
    stage.server.economy(|economy| economy.goods.iter_mut().for_each(|good| good.stock += 20));
    for (number, trouble) in (0..).zip(troubles) {
        let (name, done) = (format!("{trouble:?}"), !matches!(trouble, Trouble::Html(_)));
        let before = stage.server.asked(Operation::Launch).len();
        stage.server.trouble(Operation::Launch, trouble);
        let order = stage.order_of(&offer, number);
        match stage.cloud.launch(&order).await {
            Ok(machine) => return Err(format!("{name} passes for success: {machine:?}")),
            Err(fault) => ensure(fault.outcome == Outcome::Ambiguous, || format!("{name}: {fault}"))?,
        }
        let sent = stage.server.asked(Operation::Launch).len() - before;
        ensure(sent == 1, || format!("{name}: the launch was sent {sent} times"))?;
        let found = stage.listed().await?.iter().any(|machine| machine.name == order.name());
        ensure(found == done, || format!("{name}: it was done, and the listing does not have it"))?;
    }
    Ok(())
}

async fn never_left(stage: &Stage) -> Verdict {
    let order = stage.order(1).await?;
    stage.server.trouble(Operation::Launch, Trouble::NotSent);
    match stage.cloud.launch(&order).await {
        Ok(machine) => Err(format!("nothing was sent, and {machine:?} was launched")),
        Err(fault) => ensure(fault.outcome == Outcome::Transient, || fault.to_string()),
    }
}

/// What was made for it goes; what belongs to others stays, and the next attempt meets nothing of it.
async fn abandoned(stage: &Stage) -> Verdict {
    let offer = stage.offer().await?;
    stage.server.economy(|economy| economy.goods.iter_mut().for_each(|good| good.stock += 5));
    let other = stage.launched(1).await?;
    let order = stage.order_of(&offer, 2);
    stage.server.trouble(Operation::Launch, Trouble::Silence);
    match stage.cloud.launch(&order).await {
        Ok(machine) => return Err(format!("silence passes for success: {machine:?}")),
        Err(fault) => ensure(fault.outcome == Outcome::Ambiguous, || fault.to_string())?,
    }
    for _ in 0..2 {
        stage.cloud.abandon(&order.name()).await.map_err(|fault| format!("it cannot be abandoned: {fault}"))?;
    }
    let left: Vec<String> = stage.listed().await?.into_iter().map(|machine| machine.id).collect();
    ensure(left == [other.id.as_str()], || format!("{left:?} are left, and only {} should be", other.id))?;
    let again = stage.cloud.launch(&order).await.map_err(|fault| format!("the next attempt failed: {fault}"))?;
    ensure(again.name == order.name(), || format!("{again:?} is not what was ordered"))
}

async fn half_a_listing(stage: &Stage) -> Verdict {
    let offer = stage.offer().await?;
    stage.server.economy(|economy| {
        economy.page = 2;
        economy.goods.iter_mut().for_each(|good| good.stock += 5);
    });
    for number in 0..3 {
        let order = stage.order_of(&offer, number);
        stage.cloud.launch(&order).await.map_err(|fault| fault.to_string())?;
    }
    for trouble in [Trouble::Truncated, Trouble::WrongTypes, Trouble::Empty, Trouble::Html(200), Trouble::Html(503)] {
        let name = format!("{trouble:?}");
        stage.server.trouble(Operation::List, trouble);
        match stage.cloud.list(&Stage::owner()).await {
            Ok(machines) => return Err(format!("{name} passes for a listing of {}", machines.len())),
            Err(fault) => ensure(fault.outcome == Outcome::Transient, || format!("{name}: {fault}"))?,
        }
    }
    ensure(stage.listed().await?.len() == 3, || "afterwards not all are listed".to_owned())
}

async fn nonsense(stage: &Stage) -> Verdict {
    let machine = stage.launched(1).await?;
    let order = stage.order(2).await?;
    for on in [Operation::Offers, Operation::Describe] {
        for trouble in [Trouble::Truncated, Trouble::WrongTypes, Trouble::Empty, Trouble::Html(200)] {
            let name = format!("{trouble:?} on {}", on.name());
            stage.server.trouble(on, trouble);
            match stage.ask(on, &order, &machine.id).await {
                Ok(()) => return Err(format!("{name} passes for an answer")),
                Err(fault) => ensure(fault.outcome == Outcome::Transient, || format!("{name}: {fault}"))?,
            }
        }
    }
    Ok(())
}

async fn silence(stage: &Stage) -> Verdict {
    let machine = stage.launched(1).await?;
    let order = stage.order(2).await?;
    for on in [Operation::Offers, Operation::List, Operation::Describe, Operation::Terminate, Operation::Launch] {
        stage.server.trouble(on, Trouble::Silence);
        let began = tokio::time::Instant::now();
        let outcome = match stage.ask(on, &order, &machine.id).await {
            Ok(()) => return Err(format!("silence on {} passes for an answer", on.name())),
            Err(fault) => fault.outcome,
        };
        let right = if on.spends() { Outcome::Ambiguous } else { Outcome::Transient };
        ensure(outcome == right, || format!("silence on {} is {outcome:?}", on.name()))?;
        ensure(began.elapsed() <= Duration::from_secs(120), || format!("it took {:?}", began.elapsed()))?;
    }
    Ok(())
}

async fn late_listing(stage: &Stage) -> Verdict {
    let lag = Duration::from_secs(20);
    stage.server.economy(|economy| economy.list_lag = lag);
    let machine = stage.launched(1).await?;
    tokio::time::sleep(lag).await;
    ensure(stage.listed().await?.iter().any(|one| one.id == machine.id), || "it never comes".to_owned())?;
    ensure(lag <= stage.cloud.capabilities().settles_within, || "it says that it settles sooner".to_owned())
}

async fn late_end(stage: &Stage) -> Verdict {
    stage.server.economy(|economy| economy.end_lag = Duration::from_secs(30));
    let machine = stage.launched(1).await?;
    stage.cloud.terminate(&machine.id).await.map_err(|fault| fault.to_string())?;
    let seen = stage.cloud.describe(&machine.id).await;
    let is_gone = seen.as_ref().map_or_else(|fault| fault.outcome == Outcome::NotFound, |one| one.state == State::Gone);
    ensure(!is_gone, || "it is called gone while the cloud still counts".to_owned())?;
    tokio::time::sleep(Duration::from_secs(30)).await;
    match stage.cloud.describe(&machine.id).await {
        Ok(machine) => ensure(machine.state == State::Gone, || format!("{:?} in the end", machine.state)),
        Err(fault) => ensure(fault.outcome == Outcome::NotFound, || fault.to_string()),
    }
}

/// A cursor that leads back to where it came from.
async fn round(stage: &Stage) -> Verdict {
    let offer = stage.offer().await?;
    stage.server.economy(|economy| {
        economy.goods.iter_mut().for_each(|good| good.stock += 5);
        economy.page = 2;
    });
    for number in 0..3 {
        let order = stage.order_of(&offer, number);
        stage.cloud.launch(&order).await.map_err(|fault| fault.to_string())?;
    }
    stage.server.economy(|economy| economy.pages_go_round = true);
    let before = stage.server.asked(Operation::List).len();
    let listed = stage.cloud.list(&Stage::owner()).await;
    let asked = stage.server.asked(Operation::List).len() - before;
    ensure(asked <= 50, || format!("it was asked {asked} times"))?;
    match listed {
        Ok(machines) => ensure(machines.len() == 3, || format!("{} machines where there are 3", machines.len())),
        Err(fault) => ensure(fault.outcome == Outcome::Transient, || fault.to_string()),
    }
}
