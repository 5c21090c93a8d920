// SPDX-License-Identifier: Apache-2.0
//! Paperspace: its words, the script that goes with a machine, and prices that nobody tells.

mod scripts;

use std::collections::BTreeMap;
use std::time::Duration;

use bivouac_clouds::fake::{Answer, Fate, Question, Trouble};
use bivouac_clouds::kit::Stage;
use bivouac_clouds::{Boot, Fault, Machine, Operation, Order, Outcome, Prices, Secret, State, find};
use bivouac_core::Money;
use bivouac_market::Capacity;
use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};

fn stage() -> Stage {
    Stage::of(find("paperspace").unwrap()).unwrap()
}

/// The order of the specification's example.
fn order() -> Order {
    let user_data = Secret::new("#!/bin/bash\necho one-time-token-0123456789\n");
    Order {
        owner: Stage::owner(),
        claim: "0b8f7a52-4c1e-4f8d-9a53-2f9d3f3f7a01".to_owned(),
        claim_name: "train-x7k2p".to_owned(),
        pool: "train".to_owned(),
        attempt: 1,
        now: jiff::Timestamp::from_second(1_794_722_400).unwrap(),
        region: "ny2".to_owned(),
        zone: String::new(),
        machine: "A4000".to_owned(),
        gpu: "A4000".to_owned(),
        gpus: 1000,
        capacity: Capacity::OnDemand,
        price: "0.76".parse().unwrap(),
        boot: Boot::CloudInit { image: None, user_data },
        disk_gib: 60,
        kill_after: Some(Duration::from_secs(23 * 3600 + 1)),
        tags: BTreeMap::new(),
    }
}

async fn launch(stage: &Stage, order: &Order) -> Result<Machine, Fault> {
    stage.cloud.launch(order).await
}

/// Asks the fake itself.
async fn ask(stage: &Stage, method: Method, path: &str, body: Value) -> Value {
    let key = format!("Bearer {}", stage.credentials.need("key").unwrap().reveal());
    let request = Request::builder().method(method).uri(format!("https://api.paperspace.com/v1{path}"));
    let request = request.header("authorization", key).body(Bytes::from(body.to_string())).unwrap();
    serde_json::from_slice(stage.server.handle(request).await.unwrap().body()).unwrap()
}

/// What was asked besides the six things.
fn asked(stage: &Stage, method: &str, path: &str) -> Vec<Question> {
    let all = stage.server.asked(Operation::Verify).into_iter().map(|(question, _)| question);
    all.filter(|one| one.method == method && one.path.starts_with(path)).collect()
}

fn machine(state: &str) -> Value {
    json!({ "id": "ps123", "name": "tgp-1a2b3c4d-x", "state": state, "machineType": "A4000", "usageRate": 0.76,
        "region": "East Coast (NY2)", "privateIp": "10.64.0.2", "publicIp": null, "dtDeleted": null,
        "dtCreated": "2026-11-15T06:00:00.000Z" })
}

async fn described(stage: &Stage, body: &Value) -> Machine {
    stage.server.trouble(Operation::Describe, Trouble::Instead(Answer::json(200, body)));
    stage.cloud.describe("ps123").await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_word_is_a_state() {
    let stage = stage();
    let table = [
        ("provisioning", State::Pending),
        ("starting", State::Pending),
        ("restarting", State::Pending),
        ("upgrading", State::Pending),
        ("serviceready", State::Pending),
        ("ready", State::Running),
        ("off", State::Stopped),
        ("stopping", State::Stopped),
        ("dreaming", State::Unknown),
    ];
    for (word, state) in table {
        let seen = described(&stage, &machine(word)).await;
        assert_eq!((seen.state, seen.word.as_str(), seen.region.as_str()), (state, word, "ny2"));
        assert_eq!((seen.price, seen.claim), (Some(Money::from_micros(760_000)), None));
    }
    let mut gone = machine("off");
    gone["dtDeleted"] = json!("2026-11-15T07:00:00.000Z");
    let seen = described(&stage, &gone).await;
    assert_eq!((seen.state, seen.ended), (State::Gone, "2026-11-15T07:00:00Z".parse().ok()));
}

#[tokio::test(start_paused = true)]
async fn events_tell_what_a_machine_does_not() {
    let stage = stage();
    let table = [
        ("create", "error", "no host", State::Failed, "create: no host"),
        ("create", "cancelled", "", State::Failed, "create: cancelled"),
        ("delete", "in progress", "", State::Terminating, "delete: in progress"),
        ("create", "in progress", "", State::Pending, "provisioning"),
        ("create", "done", "", State::Pending, "provisioning"),
        ("start", "error", "busy", State::Pending, "provisioning"),
    ];
    for (name, state, error, right, word) in table {
        let event = json!({ "id": "ev1", "name": name, "state": state, "error": error, "machineId": "ps123" });
        let events = json!({ "hasMore": false, "items": [event] });
        stage.server.trouble(Operation::Verify, Trouble::Instead(Answer::json(200, &events)));
        let seen = described(&stage, &machine("provisioning")).await;
        assert_eq!((seen.state, seen.word.as_str()), (right, word), "{name} {state}");
    }
    let before = asked(&stage, "GET", "/v1/machine-events").len();
    assert_eq!(asked(&stage, "GET", "/v1/machine-events")[0].asked("machineId"), Some("ps123"));
    described(&stage, &machine("ready")).await;
    assert_eq!(asked(&stage, "GET", "/v1/machine-events").len(), before, "a machine that is up is not doubted");
    stage.server.trouble(Operation::Verify, Trouble::Status(503));
    assert_eq!(described(&stage, &machine("starting")).await.state, State::Pending);
}

#[tokio::test(start_paused = true)]
async fn a_create_that_failed_is_seen() {
    let stage = stage();
    let launched = launch(&stage, &order()).await.unwrap();
    stage.server.economy(|economy| economy.rented[0].fate = Fate::Failed);
    let Machine { state, word, .. } = stage.cloud.describe(&launched.id).await.unwrap();
    assert_eq!((state, word.as_str()), (State::Failed, "create: no host could be found"));
}

#[tokio::test(start_paused = true)]
async fn every_refusal_has_a_meaning() {
    use Operation::{Describe, Launch};
    let stage = stage();
    let table = [
        (Launch, 400, "We are out of capacity for A4000", Outcome::NoCapacity),
        (Launch, 422, "machine type is not available in this region", Outcome::NoCapacity),
        (Launch, 403, "maxMachines reached", Outcome::Quota),
        (Launch, 400, "You have reached your machine limit", Outcome::Quota),
        (Launch, 400, "There is a problem with your billing", Outcome::Payment),
        (Launch, 402, "", Outcome::Payment),
        (Launch, 401, "", Outcome::Unauthorized),
        (Launch, 403, "you may not", Outcome::Unauthorized),
        (Launch, 429, "rate limit exceeded", Outcome::RateLimited { after: Some(Duration::from_secs(5)) }),
        (Launch, 400, "Invalid input", Outcome::Invalid),
        (Launch, 422, "Invalid input", Outcome::Invalid),
        (Launch, 409, "busy", Outcome::Conflict),
        (Launch, 500, "out of capacity", Outcome::Ambiguous),
        (Describe, 404, "", Outcome::NotFound),
        (Describe, 500, "", Outcome::Transient),
    ];
    for (on, status, message, outcome) in table {
        let body = json!({ "code": "x", "message": message });
        stage.server.trouble(on, Trouble::Instead(Answer::json(status, &body)));
        let fault = match on {
            Launch => launch(&stage, &order()).await.unwrap_err(),
            _ => stage.cloud.describe("ps123").await.unwrap_err(),
        };
        assert_eq!((fault.outcome, fault.operation), (outcome, on), "{status} {message}: {fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_is_the_example_of_the_specification() {
    let stage = stage();
    let seen = launch(&stage, &order()).await.unwrap();
    let script = asked(&stage, "POST", "/v1/startup-scripts").pop().unwrap();
    let text = "#!/bin/bash\necho one-time-token-0123456789\n";
    assert_eq!(script.body, json!({ "name": "tgp-1a2b3c4d-train-x7k2p", "script": text, "isRunOnce": true }));
    let (question, _) = stage.server.asked(Operation::Launch).pop().unwrap();
    assert_eq!((question.method.as_str(), question.path.as_str()), ("POST", "/v1/machines"));
    let all = ask(&stage, Method::GET, "/startup-scripts", Value::Null).await;
    assert_eq!(
        question.body,
        json!({
            "name": "tgp-1a2b3c4d-train-x7k2p",
            "machineType": "A4000",
            "templateId": "tvimtol9",
            "diskSize": 100,
            "region": "ny2",
            "publicIpType": "dynamic",
            "startupScriptId": all["items"][0]["id"],
            "startOnCreate": true,
            "autoShutdownEnabled": true,
            "autoShutdownTimeout": 24,
            "autoShutdownForce": true,
        })
    );
    assert_eq!((seen.state, seen.word.as_str(), seen.price), (State::Pending, "provisioning", "0.76".parse().ok()));
    assert!(!stage.cloud.capabilities().kill_timer, "a machine that is off still costs");
    launch(&stage, &Order { kill_after: None, ..order() }).await.unwrap();
    let (question, _) = stage.server.asked(Operation::Launch).pop().unwrap();
    assert_eq!(question.body.get("autoShutdownEnabled"), None);
}

/// ML-in-a-Box before plain Ubuntu, the newer before the older, and what was asked for before all.
#[tokio::test(start_paused = true)]
async fn the_system_is_looked_up() {
    let stage = stage();
    let types = |label: &str, there: bool| json!([{ "machineTypeLabel": label, "isAvailable": there }]);
    let template = |id: &str, name: &str, day: u32, types: Value| {
        let created = format!("2026-01-{day:02}T00:00:00Z");
        json!({ "id": id, "name": name, "availableMachineTypes": types, "dtCreated": created })
    };
    let chosen = async |templates: Value| {
        let answer = json!({ "hasMore": false, "nextPage": null, "items": templates });
        stage.server.trouble(Operation::Verify, Trouble::Instead(Answer::json(200, &answer)));
        let result = launch(&stage, &order()).await;
        let last = stage.server.asked(Operation::Launch).pop();
        result.map_err(|fault| fault.outcome).map(|_| last.unwrap().0.text("/templateId").to_owned())
    };
    let boxes = json!([
        template("t0nspur5", "Ubuntu 22.04", 9, types("A4000", true)),
        template("twnlo3zj", "ML-in-a-Box 20.04", 1, types("A4000", true)),
        template("tvimtol9", "ML-in-a-Box 22.04", 8, types("H100", true)),
        template("twindows", "Windows 10", 9, types("A4000", true)),
    ]);
    assert_eq!(chosen(boxes).await.as_deref(), Ok("twnlo3zj"));
    let plain = json!([template("t0nspur5", "Ubuntu 22.04", 1, Value::Null)]);
    assert_eq!(chosen(plain).await.as_deref(), Ok("t0nspur5"), "one that does not say may fit");
    let none = json!([template("tvimtol9", "ML-in-a-Box", 1, types("A4000", false))]);
    assert_eq!(chosen(none).await, Err(Outcome::Invalid));
    let own = Boot::CloudInit { image: Some("t0nspur5".to_owned()), user_data: Secret::new("#!/bin/sh") };
    launch(&stage, &Order { boot: own, ..order() }).await.unwrap();
    assert_eq!(stage.server.asked(Operation::Launch).pop().unwrap().0.text("/templateId"), "t0nspur5");
}

#[tokio::test(start_paused = true)]
async fn prices_are_those_of_the_table_until_a_machine_tells() {
    let stage = stage();
    assert_eq!(stage.cloud.capabilities().prices, Prices::Table);
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/paperspace/prices.csv"));
    let rows = bivouac_market::table::read(text).unwrap();
    let offers = stage.cloud.offers().await.unwrap();
    assert_eq!((rows.len(), offers.len()), (23, 69));
    assert!(rows.iter().all(|row| row.cloud == "paperspace" && row.on_demand.is_some() && row.vcpus >= 8000));
    for row in &rows {
        let prices: Vec<_> = offers.iter().filter(|one| one.machine == row.machine).map(|one| one.on_demand).collect();
        assert_eq!(prices, [row.on_demand; 3], "{}", row.machine);
    }
    let dear: Money = "0.99".parse().unwrap();
    stage.server.economy(|economy| economy.goods.iter_mut().for_each(|good| good.price = dear));
    launch(&stage, &order()).await.unwrap();
    let after = stage.cloud.offers().await.unwrap();
    let changed: Vec<_> = after.iter().zip(&offers).filter(|(one, other)| one.on_demand != other.on_demand).collect();
    assert_eq!(changed.len(), 1);
    assert_eq!((changed[0].0.machine.as_str(), changed[0].0.region.as_str()), ("A4000", "ny2"));
    assert_eq!(changed[0].0.on_demand, Some(dear));
    assert_eq!(stage.cloud.verify().await.unwrap().notes, ["Prices are from a table of 2026-11-15."]);
}

/// Sixty-nine pairs in the table, and only what can be started is asked for.
#[tokio::test(start_paused = true)]
async fn availability_is_asked_sparingly() {
    let stage = stage();
    let offers = stage.cloud.offers().await.unwrap();
    assert_eq!(stage.server.asked(Operation::Offers).len(), 5 * 3);
    let open: Vec<String> =
        offers.iter().filter(|one| !one.sold_out).map(|one| format!("{}@{}", one.machine, one.region)).collect();
    assert_eq!(open, ["P5000@ca1", "A4000@ny2", "A4000@ams1", "V100-32Gx2@ny2", "A100-80G@ny2"]);
    for status in [400, 404, 422] {
        stage.server.trouble(Operation::Offers, Trouble::Status(status));
        assert_eq!(stage.cloud.offers().await.unwrap().len(), offers.len(), "a type that is gone is sold out");
    }
    stage.server.trouble(Operation::Offers, Trouble::Status(410));
    assert!(stage.cloud.offers().await.unwrap_err().says.contains("retired"));
}

/// What the cloud says not to have is not ordered, and no script is made for it.
#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_not_ordered() {
    let stage = stage();
    let fault = launch(&stage, &Order { region: "ca1".to_owned(), ..order() }).await.unwrap_err();
    assert_eq!((fault.outcome, fault.operation), (Outcome::NoCapacity, Operation::Launch));
    let huge = launch(&stage, &Order { disk_gib: 16_001, ..order() }).await.unwrap_err();
    let talos = Boot::Talos { image: String::new(), config: Secret::new("") };
    let talos = launch(&stage, &Order { boot: talos, ..order() }).await.unwrap_err();
    assert_eq!((huge.outcome, talos.outcome), (Outcome::Invalid, Outcome::Invalid));
    assert!(asked(&stage, "POST", "/v1/").is_empty() && stage.server.asked(Operation::Launch).is_empty());
}

/// A page that says that there is more and not where is not the whole.
#[tokio::test(start_paused = true)]
async fn half_a_list_is_none() {
    let stage = stage();
    let page = json!({ "hasMore": true, "nextPage": null, "items": [machine("ready")] });
    stage.server.trouble(Operation::List, Trouble::Instead(Answer::json(200, &page)));
    assert_eq!(stage.cloud.list(&Stage::owner()).await.unwrap_err().outcome, Outcome::Transient);
    let last = json!({ "hasMore": false, "nextPage": "c9", "items": [machine("ready"), machine("ready")] });
    stage.server.trouble(Operation::List, Trouble::Instead(Answer::json(200, &last)));
    assert_eq!(stage.cloud.list(&Stage::owner()).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_team_tells_its_limit_and_no_script_is_told() {
    let stage = stage();
    let account = stage.cloud.verify().await.unwrap();
    assert_eq!((account.machine_limit, account.name.as_deref()), (Some(100), Some("kit-team")));
    let body = json!({ "message": "bad script: echo one-time-token-0123456789" });
    stage.server.trouble(Operation::Launch, Trouble::Instead(Answer::json(400, &body)));
    let fault = launch(&stage, &order()).await.unwrap_err();
    assert!(!format!("{fault} {fault:?}").contains("token-0123456"), "{fault}");
}
