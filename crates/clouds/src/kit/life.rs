// SPDX-License-Identifier: Apache-2.0
//! From the price list to a machine that is gone.

use std::collections::BTreeSet;

use bivouac_core::Money;
use bivouac_market::Gpu;
use serde_json::json;

use super::{Behaviour, Stage, Verdict, ensure};
use crate::cloud::State;
use crate::fake::{Fate, Good};
use crate::fault::{Operation, Outcome};

pub const ALL: &[Behaviour] = &[
    Behaviour { name: "offers-are-what-the-cloud-sells", run: |stage| Box::pin(offers(stage)) },
    Behaviour { name: "a-machine-lives-and-ends", run: |stage| Box::pin(a_life(stage)) },
    Behaviour { name: "only-ours-are-listed", run: |stage| Box::pin(only_ours(stage)) },
    Behaviour { name: "every-page-is-read", run: |stage| Box::pin(every_page(stage)) },
    Behaviour { name: "ending-twice-is-ending", run: |stage| Box::pin(ending_twice(stage)) },
    Behaviour { name: "an-unknown-machine-is-not-found", run: |stage| Box::pin(unknown(stage)) },
    Behaviour { name: "a-strange-state-is-told-as-it-is", run: |stage| Box::pin(strange(stage)) },
    Behaviour { name: "the-price-told-is-the-price-asked", run: |stage| Box::pin(price(stage)) },
    Behaviour { name: "the-same-order-is-one-machine", run: |stage| Box::pin(same_order(stage)) },
    Behaviour { name: "a-credential-is-checked", run: |stage| Box::pin(verify(stage)) },
];

async fn offers(stage: &Stage) -> Verdict {
    let offers = stage.cloud.offers().await.map_err(|fault| fault.to_string())?;
    let goods = stage.server.economy(|economy| economy.goods.clone());
    for good in goods.iter().filter(|good| good.stock > 0) {
        let same = |region: &str| region == good.region;
        let found = offers.iter().find(|one| one.machine == good.machine && same(&one.region) && !one.sold_out);
        let found = found.ok_or_else(|| format!("{} in {} is for sale and not offered", good.machine, good.region))?;
        ensure(found.on_demand == Some(good.price), || {
            format!("{} costs {} and is offered for {:?}", good.machine, good.price, found.on_demand)
        })?;
        ensure(found.gpus == good.gpus * 1000 && found.vcpus == good.vcpus * 1000, || {
            format!("{} has another size: {found:?}", good.machine)
        })?;
    }
    for offer in &offers {
        let sold = |good: &Good| good.machine == offer.machine && good.region == offer.region && good.stock > 0;
        ensure(offer.sold_out || goods.iter().any(sold), || format!("{} is offered and sold out", offer.machine))?;
        ensure(offer.gpus == 0 || matches!(Gpu::named(&offer.gpu), Gpu::Known(_)), || {
            format!("{:?} of {} is no GPU that we know", offer.gpu, offer.machine)
        })?;
    }
    ensure(!offers.is_empty(), || "nothing is offered".to_owned())
}

async fn a_life(stage: &Stage) -> Verdict {
    let order = stage.order(1).await?;
    let launched = stage.cloud.launch(&order).await.map_err(|fault| fault.to_string())?;
    ensure(launched.state != State::Gone && !launched.id.is_empty(), || format!("launched as {launched:?}"))?;
    let listed = stage.listed().await?;
    let [seen] = listed.as_slice() else { return Err(format!("one was launched, {} are listed", listed.len())) };
    ensure(seen.id == launched.id, || format!("launched {}, listed {}", launched.id, seen.id))?;
    ensure(seen.name == order.name(), || format!("called {:?} and not {:?}", seen.name, order.name()))?;
    ensure(seen.claim.as_ref().is_none_or(|claim| *claim == order.claim), || {
        format!("another claim: {:?}", seen.claim)
    })?;
    tokio::time::sleep(stage.server.economy(|economy| economy.boot)).await;
    let up = stage.cloud.describe(&launched.id).await.map_err(|fault| fault.to_string())?;
    ensure(up.state == State::Running, || format!("{:?} ({}) after its start", up.state, up.word))?;
    stage.cloud.terminate(&launched.id).await.map_err(|fault| fault.to_string())?;
    ends(stage, &launched.id).await
}

/// The cloud says so itself, within the time that it takes to settle.
async fn ends(stage: &Stage, id: &str) -> Verdict {
    tokio::time::sleep(stage.cloud.capabilities().settles_within).await;
    match stage.cloud.describe(id).await {
        Ok(machine) => ensure(machine.state == State::Gone, || format!("{:?} after its end", machine.state))?,
        Err(fault) => ensure(fault.outcome == Outcome::NotFound, || fault.to_string())?,
    }
    let left = stage.listed().await?;
    ensure(left.iter().all(|one| one.id != id || one.state == State::Gone), || format!("still listed: {left:?}"))
}

async fn only_ours(stage: &Stage) -> Verdict {
    let ours = stage.launched(1).await?;
    let mut foreign = stage.order(2).await?;
    foreign.owner.0 = "99999999".to_owned();
    stage.cloud.launch(&foreign).await.map_err(|fault| fault.to_string())?;
    stage.server.economy(|economy| {
        let good = economy.goods.iter().find(|good| good.stock > 0).cloned();
        let good = good.ok_or_else(|| "nothing is left".to_owned())?;
        economy.rent(&good.machine, &good.region, false, "somebody-elses", json!({})).map_err(|why| format!("{why:?}"))
    })?;
    let listed = stage.listed().await?;
    let ids: Vec<&str> = listed.iter().map(|machine| machine.id.as_str()).collect();
    ensure(ids == [ours.id.as_str()], || format!("ours is {}, listed are {ids:?}", ours.id))
}

async fn every_page(stage: &Stage) -> Verdict {
    let offer = stage.offer().await?;
    stage.server.economy(|economy| {
        economy.page = 2;
        economy.goods.iter_mut().for_each(|good| good.stock = good.stock.max(1) * 20);
    });
    let mut launched = BTreeSet::new();
    for number in 0..7 {
        let order = stage.order_of(&offer, number);
        launched.insert(stage.cloud.launch(&order).await.map_err(|fault| fault.to_string())?.id);
    }
    let listed: Vec<String> = stage.listed().await?.into_iter().map(|machine| machine.id).collect();
    ensure(listed.len() == 7, || format!("7 were launched, {} are listed", listed.len()))?;
    ensure(launched == listed.into_iter().collect(), || "others are listed than were launched".to_owned())?;
    offers(stage).await
}

async fn ending_twice(stage: &Stage) -> Verdict {
    let machine = stage.launched(1).await?;
    for time in ["first", "second"] {
        let ended = stage.cloud.terminate(&machine.id).await;
        ended.map_err(|fault| format!("the {time} time: {fault}"))?;
    }
    ends(stage, &machine.id).await?;
    stage.cloud.terminate(&machine.id).await.map_err(|fault| format!("when it was gone: {fault}"))
}

async fn unknown(stage: &Stage) -> Verdict {
    // An id of the right form.
    let machine = stage.launched(1).await?;
    stage.server.economy(|economy| economy.rented.clear());
    match stage.cloud.describe(&machine.id).await {
        Ok(machine) => ensure(machine.state == State::Gone, || format!("it is {machine:?}")),
        Err(fault) => ensure(fault.outcome == Outcome::NotFound, || fault.to_string()),
    }
}

async fn strange(stage: &Stage) -> Verdict {
    let machine = stage.launched(1).await?;
    stage.server.economy(|economy| economy.rented.iter_mut().for_each(|one| one.fate = Fate::Strange));
    let seen = stage.cloud.describe(&machine.id).await.map_err(|fault| fault.to_string())?;
    ensure(seen.state == State::Unknown && !seen.word.is_empty(), || format!("{:?} {:?}", seen.state, seen.word))?;
    ensure(stage.listed().await?.len() == 1, || "a machine in a strange state is not listed".to_owned())
}

async fn price(stage: &Stage) -> Verdict {
    let order = stage.order(1).await?;
    let dearer = Money::from_micros(order.price.micros() * 2);
    stage.server.economy(|economy| economy.goods.iter_mut().for_each(|good| good.price = dearer));
    let machine = match stage.cloud.launch(&order).await {
        Ok(machine) => machine,
        // A cloud that can be told the highest price keeps to it.
        Err(fault) => return ensure(fault.outcome == Outcome::NoCapacity, || fault.to_string()),
    };
    let seen = stage.cloud.describe(&machine.id).await.map_err(|fault| fault.to_string())?;
    ensure(seen.price.is_none_or(|price| price == dearer), || format!("it costs {dearer} and says {:?}", seen.price))
}

async fn same_order(stage: &Stage) -> Verdict {
    if !stage.cloud.capabilities().idempotent_launch {
        return Ok(());
    }
    let order = stage.order(1).await?;
    for _ in 0..2 {
        let outcome = stage.cloud.launch(&order).await;
        let right = outcome.as_ref().map_or_else(|fault| fault.outcome == Outcome::Conflict, |_| true);
        ensure(right, || format!("the same order again: {outcome:?}"))?;
    }
    let count = stage.server.economy(|economy| economy.rented.len());
    ensure(count == 1, || format!("the same order twice made {count} machines"))
}

async fn verify(stage: &Stage) -> Verdict {
    stage.cloud.verify().await.map_err(|fault| format!("a good credential: {fault}"))?;
    stage.server.trouble(None, crate::fake::Trouble::Refuse(crate::fake::Refused::Unauthorized));
    match stage.cloud.verify().await {
        Ok(account) => Err(format!("a bad credential is good: {account:?}")),
        Err(fault) => {
            ensure(fault.outcome == Outcome::Unauthorized && fault.operation == Operation::Verify, || fault.to_string())
        }
    }
}
