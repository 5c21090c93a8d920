// SPDX-License-Identifier: Apache-2.0
//! Verda: its words, its tokens, and what a machine must not leave behind.

use std::collections::BTreeMap;
use std::time::Duration;

use bivouac_clouds::fake::{Answer, Economy, Fate, Question, Refused, Server, Shapes, Trouble};
use bivouac_clouds::kit::Stage;
use bivouac_clouds::verda::fake::{FakeVerda, SHAPES};
use bivouac_clouds::{Boot, Fault, Machine, Operation, Order, Outcome, Secret, State, find};
use bivouac_market::Capacity;
use serde_json::{Value, json};

fn stage() -> Stage {
    Stage::of(find("verda").unwrap()).unwrap()
}

/// One that does not end what it is still making.
fn strict() -> Stage {
    let entry = find("verda").unwrap();
    let Stage { credentials, .. } = Stage::of(entry).unwrap();
    let field = |name| credentials.need(name).unwrap().reveal().to_owned();
    let shapes = Shapes::parse(SHAPES).unwrap();
    let economy = Economy::new(shapes.goods.clone());
    let fake = FakeVerda::new(&field("client_id"), &field("client_secret"), shapes).that_keeps_what_it_makes();
    let server = Server::new(Box::new(fake), economy);
    let cloud = (entry.client)(&credentials, server.line(), entry.base).unwrap();
    Stage { cloud, server, credentials }
}

fn order() -> Order {
    Order {
        owner: Stage::owner(),
        claim: "0b8f7a52-4c1e-4f8d-9a53-2f9d3f3f7a01".to_owned(),
        claim_name: "train-x7k2p".to_owned(),
        pool: "train".to_owned(),
        attempt: 1,
        now: jiff::Timestamp::from_second(1_794_722_400).unwrap(),
        region: "FIN-01".to_owned(),
        zone: String::new(),
        machine: "1H100.80S.30V".to_owned(),
        gpu: "H100 SXM5".to_owned(),
        gpus: 1000,
        capacity: Capacity::OnDemand,
        price: "2.29".parse().unwrap(),
        boot: Boot::CloudInit { image: None, user_data: Secret::new("#!/bin/bash\necho one-time-token-0123456789\n") },
        disk_gib: 100,
        kill_after: None,
        tags: BTreeMap::new(),
    }
}

fn spot() -> Order {
    Order { capacity: Capacity::Spot, price: "0.80".parse().unwrap(), ..order() }
}

async fn launch(stage: &Stage, order: &Order) -> Result<Machine, Fault> {
    stage.cloud.launch(order).await
}

/// What was asked besides the six things.
fn asked(stage: &Stage, method: &str, path: &str) -> Vec<Question> {
    let all = stage.server.asked(Operation::Verify).into_iter().map(|(question, _)| question);
    all.filter(|one| one.method == method && one.path.starts_with(path)).collect()
}

/// Asks the fake itself, with the newest token.
async fn ask(stage: &Stage, path: &str) -> Value {
    let all = Operation::ALL.into_iter().flat_map(|operation| stage.server.asked(operation));
    let with_token = all.filter(|(question, _)| question.headers.contains_key("authorization"));
    let (last, _) = with_token.max_by_key(|(_, at)| *at).unwrap();
    let request = http::Request::builder().uri(format!("https://api.verda.com/v1{path}"));
    let request = request.header("authorization", &last.headers["authorization"]).body(bytes::Bytes::new()).unwrap();
    serde_json::from_slice(stage.server.handle(request).await.unwrap().body()).unwrap()
}

async fn left(stage: &Stage, path: &str) -> usize {
    ask(stage, path).await.as_array().unwrap().len()
}

fn instance(status: &str, is_spot: bool) -> Value {
    json!({ "id": "2f9d3f3f-4c1e-4f8d-9a53-0b8f7a520001", "instance_type": "1H100.80S.30V",
        "hostname": "tgp-1a2b3c4d-x", "description": "tgp-cluster=1a2b3c4d tgp-claim=c1",
        "status": status, "ip": null, "price_per_hour": 2.29,
        "created_at": "2026-11-15T06:00:00.000Z", "location": "FIN-01", "is_spot": is_spot })
}

#[tokio::test(start_paused = true)]
async fn every_word_is_a_state() {
    let stage = stage();
    let table = [
        ("ordered", State::Pending, State::Pending),
        ("provisioning", State::Pending, State::Pending),
        ("restoring", State::Pending, State::Pending),
        ("running", State::Running, State::Running),
        ("offline", State::Stopped, State::Interrupted),
        ("starting_hibernation", State::Stopped, State::Stopped),
        ("hibernating", State::Stopped, State::Stopped),
        ("discontinued", State::Gone, State::Interrupted),
        ("notfound", State::Gone, State::Gone),
        ("error", State::Failed, State::Failed),
        ("dreaming", State::Unknown, State::Unknown),
    ];
    for (word, firm, loose) in table {
        for (is_spot, state) in [(false, firm), (true, loose)] {
            let answer = Answer::json(200, &instance(word, is_spot));
            stage.server.trouble(Operation::Describe, Trouble::Instead(answer));
            let seen = stage.cloud.describe("x").await.unwrap();
            assert_eq!((seen.state, seen.word.as_str(), seen.region.as_str()), (state, word, "FIN-01"), "{is_spot}");
            assert_eq!((seen.claim.as_deref(), seen.price), (Some("c1"), "2.29".parse().ok()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_refusal_has_a_meaning() {
    use Operation::{Describe, Launch, Terminate};
    let stage = stage();
    let table = [
        (Launch, 503, "service_unavailable", "not enough capacity in FIN-01", Outcome::NoCapacity),
        (Launch, 400, "invalid_request", "instance type is not available in this location", Outcome::NoCapacity),
        (Launch, 503, "", "Service Unavailable", Outcome::Ambiguous),
        (Launch, 403, "forbidden_action", "you have reached your limit", Outcome::Quota),
        (Launch, 402, "insufficient_funds", "", Outcome::Payment),
        (Launch, 400, "insufficient_funds", "", Outcome::Payment),
        (Launch, 401, "unauthorized_request", "", Outcome::Unauthorized),
        (Launch, 400, "unauthorized_request", "", Outcome::Unauthorized),
        (Launch, 400, "invalid_request", "image is wrong", Outcome::Invalid),
        (Launch, 429, "", "limit", Outcome::RateLimited { after: Some(Duration::from_secs(5)) }),
        (Launch, 500, "server_error", "no capacity", Outcome::Ambiguous),
        (Describe, 404, "not_found", "", Outcome::NotFound),
        (Describe, 400, "not_found", "", Outcome::NotFound),
        (Describe, 400, "invalid_request", "Invalid instance id", Outcome::NotFound),
        (Describe, 500, "server_error", "", Outcome::Transient),
        (Terminate, 400, "invalid_request", "Can't discontinue a provisioning instance", Outcome::Transient),
        (Terminate, 409, "", "busy", Outcome::Transient),
        (Terminate, 400, "invalid_request", "action is wrong", Outcome::Invalid),
    ];
    let machine = launch(&stage, &order()).await.unwrap();
    for (on, status, code, message, outcome) in table {
        let body = json!({ "code": code, "message": message });
        stage.server.trouble(on, Trouble::Instead(Answer::json(status, &body)));
        let fault = match on {
            Launch => launch(&stage, &order()).await.unwrap_err(),
            Describe => stage.cloud.describe(&machine.id).await.unwrap_err(),
            _ => stage.cloud.terminate(&machine.id).await.unwrap_err(),
        };
        assert_eq!((fault.outcome, fault.operation), (outcome, on), "{status} {code} {message}: {fault}");
    }
    for gone in ["Invalid instance id", "Can't discontinue a discontinued instance"] {
        let body = json!({ "code": "invalid_request", "message": gone });
        stage.server.trouble(Terminate, Trouble::Instead(Answer::json(400, &body)));
        stage.cloud.terminate(&machine.id).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_is_as_the_specification_says() {
    let stage = stage();
    let machine = launch(&stage, &order()).await.unwrap();
    let script = asked(&stage, "POST", "/v1/scripts").pop().unwrap();
    let text = "#!/bin/bash\necho one-time-token-0123456789\n";
    assert_eq!(script.body, json!({ "name": "tgp-1a2b3c4d-train-x7k2p", "script": text }));
    let (question, _) = stage.server.asked(Operation::Launch).pop().unwrap();
    let scripts = ask(&stage, "/scripts").await;
    let mut right = json!({
        "instance_type": "1H100.80S.30V",
        "image": "ubuntu-24.04-cuda-12.8-open-docker",
        "hostname": "tgp-1a2b3c4d-train-x7k2p",
        "description": "tgp-cluster=1a2b3c4d tgp-claim=0b8f7a52-4c1e-4f8d-9a53-2f9d3f3f7a01 tgp-pool=train",
        "ssh_key_ids": ["5b7e1a52-0c1e-4f8d-9a53-2f9d3f3f7a77"],
        "startup_script_id": scripts[0]["id"],
        "location_code": "FIN-01",
        "is_spot": false,
        "contract": "PAY_AS_YOU_GO",
        "pricing": "FIXED_PRICE",
        "os_volume": { "name": "tgp-1a2b3c4d-train-x7k2p", "size": 100 },
    });
    assert_eq!((question.path.as_str(), &question.body), ("/v1/instances", &right));
    let listed = stage.cloud.list(&Stage::owner()).await.unwrap();
    assert_eq!((listed[0].id.as_str(), listed[0].claim.clone()), (machine.id.as_str(), Some(order().claim)));
    launch(&stage, &Order { disk_gib: 10, ..spot() }).await.unwrap();
    let (question, _) = stage.server.asked(Operation::Launch).pop().unwrap();
    right["startup_script_id"] = ask(&stage, "/scripts").await[1]["id"].clone();
    right["is_spot"] = json!(true);
    right["contract"] = json!("SPOT");
    right["os_volume"]["size"] = json!(50);
    right["os_volume"]["on_spot_discontinue"] = json!("delete_permanently");
    assert_eq!(question.body, right);
    launch(&stage, &Order { machine: "1V100.6V".to_owned(), ..order() }).await.unwrap();
    let (question, _) = stage.server.asked(Operation::Launch).pop().unwrap();
    assert_eq!(question.text("/image"), "ubuntu-22.04-cuda-12.0-docker");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_used_until_shortly_before_its_end() {
    let stage = stage();
    let tokens = |stage: &Stage| asked(stage, "POST", "/v1/oauth2/token").len();
    for _ in 0..3 {
        stage.cloud.list(&Stage::owner()).await.unwrap();
    }
    assert_eq!(tokens(&stage), 1);
    let body = &asked(&stage, "POST", "/v1/oauth2/token")[0].body;
    assert_eq!(body["grant_type"], "client_credentials");
    tokio::time::sleep(Duration::from_secs(3600 - 30)).await;
    stage.cloud.list(&Stage::owner()).await.unwrap();
    assert_eq!(tokens(&stage), 2);
    // The cloud takes it back.
    stage.server.trouble(Operation::List, Trouble::Refuse(Refused::Unauthorized));
    let fault = stage.cloud.list(&Stage::owner()).await.unwrap_err();
    assert_eq!((fault.outcome, tokens(&stage)), (Outcome::Unauthorized, 2), "nothing is tried again");
    stage.cloud.list(&Stage::owner()).await.unwrap();
    assert_eq!(tokens(&stage), 3);
}

/// A launch without a token was not sent, whatever became of the token.
#[tokio::test(start_paused = true)]
async fn a_token_in_doubt_is_no_launch_in_doubt() {
    for trouble in [Trouble::DoneButLost, Trouble::Silence, Trouble::Empty, Trouble::Status(500)] {
        let (stage, name) = (stage(), format!("{trouble:?}"));
        stage.server.trouble(Operation::Verify, trouble);
        let fault = launch(&stage, &order()).await.unwrap_err();
        assert_eq!((fault.outcome, fault.operation), (Outcome::Transient, Operation::Launch), "{name}");
        assert!(stage.server.asked(Operation::Launch).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn no_token_is_told() {
    let stage = stage();
    stage.cloud.list(&Stage::owner()).await.unwrap();
    for status in [200, 400, 401] {
        let body = json!({ "code": "x", "message": "bad: token-of-verda-number-0000 renewal-at-verda-0000" });
        stage.server.trouble(Operation::List, Trouble::Instead(Answer::json(status, &body)));
        let fault = stage.cloud.list(&Stage::owner()).await.unwrap_err();
        let told = format!("{fault} {fault:?} {:?}", stage.cloud);
        assert!(!told.contains("token-of-verda") && !told.contains("renewal-at"), "{told}");
    }
    let (question, _) = stage.server.asked(Operation::List).pop().unwrap();
    assert!(question.headers["authorization"].is_sensitive());
    let body = json!({ "message": "bad script: echo one-time-token-0123456789" });
    stage.server.trouble(Operation::Launch, Trouble::Instead(Answer::json(400, &body)));
    let fault = launch(&stage, &order()).await.unwrap_err();
    assert!(!format!("{fault:?}").contains("token-0123456"), "{fault}");
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_machine_is_left() {
    let stage = stage();
    let machine = launch(&stage, &order()).await.unwrap();
    assert_eq!((left(&stage, "/volumes").await, left(&stage, "/scripts").await), (1, 1));
    stage.cloud.terminate(&machine.id).await.unwrap();
    let (question, _) = stage.server.asked(Operation::Terminate).pop().unwrap();
    assert_eq!((question.method.as_str(), question.path.as_str()), ("PUT", "/v1/instances"));
    assert_eq!((&question.body["action"], &question.body["delete_permanently"]), (&json!("delete"), &json!(true)));
    assert_eq!((left(&stage, "/volumes").await, left(&stage, "/scripts").await), (0, 0));
}

/// A refused launch takes its script back, one in doubt does not.
#[tokio::test(start_paused = true)]
async fn a_script_is_kept_only_for_a_machine() {
    let stage = stage();
    for trouble in [Trouble::Status(400), Trouble::Status(402), Trouble::Status(429), Trouble::NotSent] {
        stage.server.trouble(Operation::Launch, trouble);
        launch(&stage, &order()).await.unwrap_err();
        assert_eq!(left(&stage, "/scripts").await, 0);
    }
    assert_eq!(asked(&stage, "POST", "/v1/scripts").len(), 4);
    stage.server.trouble(Operation::Launch, Trouble::DoneButLost);
    assert_eq!(launch(&stage, &order()).await.unwrap_err().outcome, Outcome::Ambiguous);
    assert_eq!(left(&stage, "/scripts").await, 1);
    stage.cloud.abandon("tgp-1a2b3c4d-train-other").await.unwrap();
    assert_eq!(left(&stage, "/scripts").await, 1, "it belongs to another");
    stage.cloud.abandon(&order().name()).await.unwrap();
    assert_eq!(left(&stage, "/scripts").await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_being_made_is_ended_later() {
    let stage = strict();
    let machine = launch(&stage, &order()).await.unwrap();
    let fault = stage.cloud.terminate(&machine.id).await.unwrap_err();
    assert_eq!((fault.outcome, fault.operation), (Outcome::Transient, Operation::Terminate), "{fault}");
    assert_eq!(left(&stage, "/scripts").await, 1);
    tokio::time::sleep(Duration::from_secs(90)).await;
    stage.cloud.terminate(&machine.id).await.unwrap();
    assert_eq!((left(&stage, "/volumes").await, left(&stage, "/scripts").await), (0, 0));
}

/// A spot machine that was taken looks like one that we ended.
#[tokio::test(start_paused = true)]
async fn what_we_ended_was_not_taken() {
    let stage = stage();
    let machine = launch(&stage, &spot()).await.unwrap();
    stage.server.economy(|economy| economy.rented[0].fate = Fate::Interrupted);
    assert_eq!(stage.cloud.describe(&machine.id).await.unwrap().state, State::Interrupted);
    stage.cloud.terminate(&machine.id).await.unwrap();
    let mut over = instance("discontinued", true);
    over["id"] = json!(machine.id);
    stage.server.trouble(Operation::Describe, Trouble::Instead(Answer::json(200, &over)));
    assert_eq!(stage.cloud.describe(&machine.id).await.unwrap().state, State::Gone);
    stage.server.trouble(Operation::List, Trouble::Instead(Answer::json(200, &json!([over, over]))));
    let listed = stage.cloud.list(&Stage::owner()).await.unwrap();
    assert_eq!((listed.len(), listed[0].state), (1, State::Gone));
}

#[tokio::test(start_paused = true)]
async fn offers_tell_place_and_kind() {
    let stage = stage();
    let types = json!([
        { "instance_type": "8V", "price_per_hour": "5.00", "spot_price": "2.50", "currency": "usd",
            "gpu": { "description": "8x NVidia Tesla V100", "number_of_gpus": 8 },
            "gpu_memory": { "size_in_gigabytes": 128 },
            "cpu": { "number_of_cores": 48 }, "memory": { "size_in_gigabytes": 192 } },
        { "instance_type": "GH", "price_per_hour": 3.0, "spot_price_per_hour": "0", "model": "GH200",
            "gpu_memory": null, "gpu": { "number_of_gpus": 1 },
            "cpu": { "number_of_cores": 72 }, "memory": { "size_in_gigabytes": 480 } },
    ]);
    let firm = json!([{ "location_code": "FIN-01", "availabilities": ["8V", "GH"] }]);
    let loose = json!([{ "location_code": "ICE-01", "availabilities": ["8V", "GH"] }]);
    for answer in [types, firm, loose, json!([{ "code": "FIN-09" }])] {
        stage.server.trouble(Operation::Offers, Trouble::Instead(Answer::json(200, &answer)));
    }
    let offers = stage.cloud.offers().await.unwrap();
    let told: Vec<_> = offers
        .iter()
        .map(|one| {
            let price = |money: Option<bivouac_core::Money>| money.map(|money| money.to_string()).unwrap_or_default();
            format!("{} {} {}/{} {}", one.machine, one.region, price(one.on_demand), price(one.spot), one.sold_out)
        })
        .collect();
    let right = [
        "8V FIN-01 5.00/ false",
        "8V FIN-09 5.00/2.50 true",
        "8V ICE-01 /2.50 false",
        "GH FIN-01 3.00/ false",
        "GH FIN-09 3.00/ true",
        "GH ICE-01 3.00/ true",
    ];
    assert_eq!(told, right);
    let one = &offers[0];
    assert_eq!((one.gpu.as_str(), one.gpus, one.gpu_memory_gib), ("NVidia Tesla V100", 8000, Some(16)));
    assert_eq!((one.vcpus, one.memory_mib, one.currency.as_str()), (48_000, 192 * 1024, "USD"));
    assert_eq!((offers[3].arch, offers[3].gpu_memory_gib), (bivouac_market::Arch::Arm64, None));
}

#[tokio::test(start_paused = true)]
async fn the_balance_is_told_in_dollars_only() {
    let stage = stage();
    assert_eq!(stage.cloud.verify().await.unwrap().balance, "100".parse().ok());
    let euros = Answer::json(200, &json!({ "amount": 12.5, "currency": "eur" }));
    stage.server.trouble(Operation::Verify, Trouble::Instead(euros));
    let account = stage.cloud.verify().await.unwrap();
    assert_eq!((account.balance, account.notes), (None, vec!["The balance is in eur.".to_owned()]));
}
