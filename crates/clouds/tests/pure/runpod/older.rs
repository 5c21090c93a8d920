// SPDX-License-Identifier: Apache-2.0
//! The older API of RunPod: what it alone can do, and the day after its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bivouac_clouds::fake::{Answer, Economy, Fate, Server, Shapes, Trouble};
use bivouac_clouds::kit::{Stage, behaviours};
use bivouac_clouds::runpod::fake::{FakeRunpod, SHAPES};
use bivouac_clouds::{Line, Operation, Order, Outcome, State, find};
use bivouac_market::{Capacity, Listing};
use bytes::Bytes;
use http::{Request, Response};
use serde_json::json;

use super::{RTX, last, launch, order, stage};

/// The same cloud after the end of GraphQL.
fn later() -> Stage {
    let entry = find("runpod").unwrap();
    let before = Stage::of(entry).unwrap();
    let key = before.credentials.need("key").unwrap().reveal().to_owned();
    let shapes = Shapes::parse(SHAPES).unwrap();
    let economy = Economy::new(shapes.goods.clone());
    let server = Server::new(Box::new(FakeRunpod::new(&key, shapes).without_graphql()), economy);
    let cloud = (entry.client)(&before.credentials, server.line(), entry.base).unwrap();
    Stage { cloud, server, credentials: before.credentials }
}

fn spot(price: &str) -> Order {
    Order { capacity: Capacity::Spot, price: price.parse().unwrap(), ..order() }
}

#[tokio::test(start_paused = true)]
async fn every_complaint_of_the_older_api_has_a_meaning() {
    let stage = stage();
    let table = [
        ("There are no longer any instances available with the requested specifications.", Outcome::NoCapacity),
        ("There are no instances currently available", Outcome::NoCapacity),
        ("You have reached your spend limit", Outcome::Quota),
        ("Your balance is too low", Outcome::Payment),
        ("You do not have enough funds", Outcome::Payment),
        (r#"Variable "$i" got invalid value"#, Outcome::Invalid),
        ("Cannot query field \"x\" on type \"Pod\"", Outcome::Invalid),
        ("Something went wrong. Please try again later", Outcome::Ambiguous),
    ];
    for (message, outcome) in table {
        let answer = Answer::json(200, &json!({ "errors": [{ "message": message }], "data": null }));
        stage.server.trouble(Operation::Launch, Trouble::Instead(answer));
        let fault = launch(&stage, &spot("0.31")).await.unwrap_err();
        assert_eq!((fault.outcome, fault.status), (outcome, Some(200)), "{message}");
        assert!(fault.says.starts_with(&message[..12]), "{fault}");
    }
    for (status, outcome) in [(401, Outcome::Unauthorized), (403, Outcome::Unauthorized), (400, Outcome::Invalid)] {
        stage.server.trouble(Operation::Launch, Trouble::Instead(Answer::empty(status)));
        assert_eq!(launch(&stage, &spot("0.31")).await.unwrap_err().outcome, outcome, "{status}");
    }
    let tables = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/runpod/map.yaml")).unwrap();
    let tables = bivouac_clouds::tables::Tables::parse(&tables).unwrap();
    let gone = tables.read_code(Operation::Terminate, "", "pod not found to terminate");
    assert_eq!(gone, Some(Outcome::NotFound));
}

#[tokio::test(start_paused = true)]
async fn a_spot_order_is_the_example_of_the_specification() {
    let stage = stage();
    let machine = launch(&stage, &spot("0.31")).await.unwrap();
    let question = last(&stage, Operation::Launch);
    assert_eq!((question.method.as_str(), question.path.as_str()), ("POST", "/graphql"));
    let query = "mutation($i:PodRentInterruptableInput!){podRentInterruptable(input:$i){id costPerHr desiredStatus}}";
    assert_eq!(question.text("/query"), query);
    assert_eq!(
        question.body.pointer("/variables/i").unwrap(),
        &json!({
            "bidPerGpu": 0.31,
            "cloudType": "SECURE",
            "gpuTypeId": "NVIDIA GeForce RTX 4090",
            "gpuCount": 1,
            "name": "tgp-1a2b3c4d-train-x7k2p",
            "imageName": "ghcr.io/acme/train:1",
            "containerDiskInGb": 40,
            "volumeInGb": 0,
            "ports": "22/tcp",
            "env": [
                { "key": "TGP_CLAIM", "value": "0b8f7a52-4c1e-4f8d-9a53-2f9d3f3f7a01" },
                { "key": "TGP_CLUSTER", "value": "1a2b3c4d" },
            ],
            "dataCenterId": "EU-RO-1",
            "dockerArgs": "bash -c 'exec /tgp/start'",
        })
    );
    assert_eq!((machine.state, machine.price), (State::Pending, "0.31".parse().ok()));
    let listed = stage.cloud.list(&Stage::owner()).await.unwrap();
    assert_eq!((listed[0].id.as_str(), listed[0].claim.clone()), (machine.id.as_str(), Some(order().claim)));
    stage.server.economy(|economy| economy.rented[0].fate = Fate::Interrupted);
    assert_eq!(stage.cloud.describe(&machine.id).await.unwrap().state, State::Interrupted);
}

/// Two GPUs at 0.62 together are 0.31 each, and a bid below what is asked buys nothing.
#[tokio::test(start_paused = true)]
async fn a_bid_is_for_one_gpu() {
    let stage = stage();
    let two = |price| Order { machine: RTX.replace("1x", "2x"), ..spot(price) };
    launch(&stage, &two("0.62")).await.unwrap();
    let question = last(&stage, Operation::Launch);
    assert_eq!(question.body.pointer("/variables/i/bidPerGpu"), Some(&json!(0.31)));
    assert_eq!(launch(&stage, &two("0.60")).await.unwrap_err().outcome, Outcome::NoCapacity);
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_an_end_is_bought_where_it_can_have_one() {
    let stage = stage();
    assert!(stage.cloud.capabilities().kill_timer);
    let order = Order { kill_after: Some(Duration::from_secs(24 * 3600)), ..order() };
    launch(&stage, &order).await.unwrap();
    let question = last(&stage, Operation::Launch);
    assert!(question.text("/query").contains("podFindAndDeployOnDemand(input:$i)"));
    assert_eq!(question.text("/variables/i/terminateAfter"), "2026-11-16T06:00:00Z");
    assert_eq!(question.body.pointer("/variables/i/bidPerGpu"), None);
    assert_eq!(stage.server.asked(Operation::Launch).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_older_api_is_final() {
    let stage = stage();
    assert!(stage.cloud.capabilities().spot && stage.cloud.capabilities().kill_timer);
    stage.server.trouble(Operation::Launch, Trouble::Status(410));
    let fault = launch(&stage, &spot("0.31")).await.unwrap_err();
    assert_eq!(fault.outcome, Outcome::Invalid, "{fault}");
    assert!(fault.says.contains("spot pods is retired"), "{fault}");
    let capabilities = stage.cloud.capabilities();
    assert!(!capabilities.spot && !capabilities.kill_timer);
    // The fake would sell again, but nobody asks.
    let fault = launch(&stage, &spot("0.31")).await.unwrap_err();
    assert_eq!((fault.outcome, fault.says.contains("retired")), (Outcome::Invalid, true), "{fault}");
    assert_eq!(stage.server.asked(Operation::Launch).len(), 1);
    let timed = Order { kill_after: Some(Duration::from_secs(3600)), ..order() };
    launch(&stage, &timed).await.unwrap();
    assert_eq!(last(&stage, Operation::Launch).path, "/v2/pods");
    let offers = stage.cloud.offers().await.unwrap();
    assert!(offers.iter().all(|offer| offer.spot.is_none()));
    assert!(stage.server.asked(Operation::Offers).iter().all(|(question, _)| question.path != "/graphql"));
    assert_eq!(stage.cloud.verify().await.unwrap().balance, None);
}

/// A timer that cannot be had is not left out in silence, and the order is not sent twice.
#[tokio::test(start_paused = true)]
async fn an_order_with_an_end_is_told_when_there_are_none_any_more() {
    let stage = later();
    let timed = Order { kill_after: Some(Duration::from_secs(3600)), ..order() };
    let fault = launch(&stage, &timed).await.unwrap_err();
    assert_eq!((fault.outcome, stage.server.asked(Operation::Launch).len()), (Outcome::Transient, 1), "{fault}");
    assert!(fault.says.contains("retired") && !stage.cloud.capabilities().kill_timer, "{fault}");
    launch(&stage, &timed).await.unwrap();
    assert_eq!(last(&stage, Operation::Launch).path, "/v2/pods");
}

#[test]
fn the_day_after_every_behaviour_holds_too() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    for behaviour in behaviours() {
        let verdict = runtime.block_on(async {
            let stage = later();
            // Only the older API tells sizes.
            stage.server.economy(|economy| economy.goods.iter_mut().for_each(|good| good.vcpus = 0));
            stage.cloud.offers().await.unwrap();
            assert!(!stage.cloud.capabilities().spot);
            (behaviour.run)(&stage).await
        });
        assert_eq!(verdict, Ok(()), "{}", behaviour.name);
    }
}

/// The older API may be throttled or down: then there is no spot, and the rest is for sale.
#[tokio::test(start_paused = true)]
async fn on_demand_needs_no_older_api() {
    let stage = stage();
    let down = Arc::new(AtomicBool::new(false));
    let (server, is_down) = (stage.server.clone(), down.clone());
    let line = Line::new(tower::service_fn(move |request: Request<Bytes>| {
        let (server, is_down) = (server.clone(), is_down.clone());
        async move {
            if request.uri().path() == "/graphql" && is_down.load(Ordering::Relaxed) {
                return Ok(Response::builder().status(503).body(Bytes::new()).unwrap());
            }
            server.handle(request).await
        }
    }));
    let entry = find("runpod").unwrap();
    let cloud = (entry.client)(&stage.credentials, line, entry.base).unwrap();
    let before = cloud.offers().await.unwrap();
    assert!(before.iter().any(|one| one.spot.is_some()));
    down.store(true, Ordering::Relaxed);
    let during = cloud.offers().await.unwrap();
    let without_spot = |one: &Listing| Listing { spot: None, ..one.clone() };
    assert_eq!(during, before.iter().map(without_spot).collect::<Vec<_>>(), "sizes are remembered");
    assert!(cloud.capabilities().spot, "that may pass");
    down.store(false, Ordering::Relaxed);
    assert_eq!(cloud.offers().await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn the_account_tells_its_balance() {
    let stage = stage();
    let account = stage.cloud.verify().await.unwrap();
    assert_eq!((account.balance, account.name.as_deref()), ("100".parse().ok(), Some("kit@example.com")));
    let complaint = Answer::json(200, &json!({ "errors": [{ "message": "no rights" }] }));
    stage.server.trouble(Operation::Verify, Trouble::Instead(complaint));
    let account = stage.cloud.verify().await.unwrap();
    assert_eq!((account.balance, account.notes), (None, vec!["The balance is not known: no rights".to_owned()]));
}
