// SPDX-License-Identifier: Apache-2.0
//! Shadeform's own words, and what is special about it.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bivouac_clouds::fake::{Answer, Trouble};
use bivouac_clouds::kit::Stage;
use bivouac_clouds::{Boot, Operation, Order, Outcome, Secret, State};
use bivouac_core::Money;
use bivouac_market::{Arch, Gpu, Listing};
use serde_json::{Value, json};

use crate::told::on_stage;
use crate::words::{asks, refused};

const CLOUD: &str = "shadeform";
const SCRIPT: &str = "#!/bin/sh\nexec /tgp/start\n";

fn order(stage: &Stage, machine: &str, region: &str) -> Order {
    let offer = Listing { machine: machine.to_owned(), region: region.to_owned(), ..Listing::default() };
    Order {
        claim: "5f0c2a4e-9d4b-4d38-9a55-6b2f4b0c1e77".to_owned(),
        claim_name: "train-x7k2p".to_owned(),
        boot: Boot::CloudInit { image: None, user_data: Secret::new(SCRIPT) },
        price: Money::from_micros(500_000),
        ..stage.order_of(&offer, 1)
    }
}

fn instead(stage: &Stage, on: Operation, body: &Value) {
    stage.server.trouble(on, Trouble::Instead(Answer::json(200, body)));
}

#[test]
fn every_word_is_a_state() {
    let table = [
        ("creating", State::Pending),
        ("pending_provider", State::Pending),
        ("pending", State::Pending),
        ("active", State::Running),
        ("error", State::Failed),
        ("deleting", State::Terminating),
        ("deleted", State::Gone),
        ("restarting", State::Unknown),
    ];
    on_stage(CLOUD, async |stage| {
        for (word, state) in table {
            let body = json!({
                "id": "d290f1ee", "cloud": "hyperstack", "region": "canada-1", "shade_instance_type": "A6000",
                "name": "tgp-1a2b3c4d-train-x7k2p", "ip": "203.0.113.7", "ssh_user": "shadeform", "status": word,
                "status_details": null, "cost_estimate": "103.4", "hourly_price": 210, "configuration": null,
                "tags": ["tgp-cluster=1a2b3c4d", "tgp-claim=c-1"], "created_at": "2026-11-15T06:00:00.001Z",
                "deleted_at": if state == State::Gone { json!("2026-11-15T07:00:00Z") } else { Value::Null },
            });
            instead(stage, Operation::Describe, &body);
            let seen = stage.cloud.describe("d290f1ee").await.unwrap();
            assert_eq!((seen.state, seen.word.as_str()), (state, word));
            assert_eq!((seen.claim.as_deref(), seen.region.as_str()), (Some("c-1"), "canada-1"));
            assert_eq!(seen.price, Some(Money::from_micros(2_100_000)), "the price is in cents");
            assert_eq!(seen.public_ip, "203.0.113.7".parse().ok());
            assert_eq!(seen.created.map(|at| at.as_second()), Some(1_794_722_400));
            assert_eq!(seen.ended.map(|at| at.as_second()), (state == State::Gone).then_some(1_794_726_000));
        }
        instead(stage, Operation::Describe, &json!({ "id": "x", "status": "creating", "ip": "", "tags": null }));
        let seen = stage.cloud.describe("x").await.unwrap();
        assert_eq!((seen.public_ip, seen.claim, seen.price), (None, None, None));
    });
}

#[test]
fn every_refusal_means_one_thing() {
    use Operation::{Describe, Launch, List, Terminate, Verify};
    let says = |text: &str| json!({ "error_code": "SOME_CODE", "error": text });
    let rate = Outcome::RateLimited { after: Some(Duration::from_secs(5)) };
    let table = [
        (Launch, 409, says("The instance type is out of stock"), Outcome::NoCapacity),
        (Launch, 500, says("Out of stock in canada-1"), Outcome::NoCapacity),
        (Launch, 400, says("A6000 is not available in canada-1"), Outcome::NoCapacity),
        (Launch, 500, says("service unavailable"), Outcome::Ambiguous),
        (Launch, 409, says("something else is under way"), Outcome::Conflict),
        (Launch, 400, says("quota exceeded for hyperstack"), Outcome::Quota),
        (Launch, 402, says("add funds"), Outcome::Payment),
        (Launch, 400, says("Your wallet balance is too low"), Outcome::Payment),
        (Verify, 401, says("bad key"), Outcome::Unauthorized),
        (List, 429, says("slow down"), rate),
        (Launch, 400, says("region cannot be read"), Outcome::Invalid),
        (Describe, 404, says("no such instance"), Outcome::NotFound),
        (Describe, 400, says("the instance has been deleted"), Outcome::NotFound),
        (Terminate, 409, says("it is being created"), Outcome::Conflict),
        (List, 500, says("out of stock"), Outcome::Transient),
    ];
    for (on, status, body, outcome) in table {
        // What checks the key is a listing.
        let on = if on == Verify { List } else { on };
        assert_eq!(refused(CLOUD, on, status, &body), outcome, "{} {status} {body}", on.name());
    }
    on_stage(CLOUD, async |stage| {
        stage.server.trouble(Terminate, Trouble::Instead(Answer::json(400, &says("It is already deleted"))));
        stage.cloud.terminate("gone").await.unwrap();
    });
}

#[test]
fn a_launch_names_the_cloud_behind_and_its_own_end() {
    on_stage(CLOUD, async |stage| {
        let order = order(stage, "hyperstack/A6000", "canada-1");
        let machine = stage.cloud.launch(&order).await.unwrap();
        let tags = [
            "tgp-claim=5f0c2a4e-9d4b-4d38-9a55-6b2f4b0c1e77",
            "tgp-cluster=1a2b3c4d",
            "tgp-created=1794722400",
            "tgp-pool=train",
        ];
        let script = json!({ "base64_script": STANDARD.encode(SCRIPT) });
        assert_eq!(
            asks(stage, "/v1/instances/create"),
            json!({
                "cloud": "hyperstack", "region": "canada-1", "shade_instance_type": "A6000", "shade_cloud": true,
                "name": "tgp-1a2b3c4d-train-x7k2p", "os": "ubuntu22.04_cuda12.8_shade_os", "tags": tags,
                "launch_configuration": { "type": "script", "script_configuration": script },
                "auto_delete": { "date_threshold": "2026-11-16T06:00:00Z", "spend_threshold": "12.00" },
            })
        );
        assert_eq!((machine.state, machine.claim.as_ref()), (State::Pending, Some(&order.claim)));
        let (asked, _) = stage.server.asked(Operation::Launch).pop().unwrap();
        assert!(asked.headers["x-api-key"].is_sensitive() && asked.headers.get("authorization").is_none());
    });
}

#[test]
fn the_end_is_as_late_as_it_was_ordered_and_no_sum_ends_it_early() {
    on_stage(CLOUD, async |stage| {
        assert!(stage.cloud.capabilities().kill_timer);
        let mut order = order(stage, "hyperstack/A6000", "canada-1");
        order.price = Money::from_micros(333_334);
        order.kill_after = Some(Duration::from_secs(5400));
        stage.cloud.launch(&order).await.unwrap();
        let right = json!({ "date_threshold": "2026-11-15T07:30:00Z", "spend_threshold": "0.51" });
        assert_eq!(asks(stage, "/v1/instances/create")["auto_delete"], right, "0.500001 is rounded up");
        order.price = Money::ZERO;
        stage.cloud.launch(&order).await.unwrap();
        let right = json!({ "date_threshold": "2026-11-15T07:30:00Z" });
        assert_eq!(asks(stage, "/v1/instances/create")["auto_delete"], right, "nothing is spent at once");
        order.kill_after = None;
        stage.cloud.launch(&order).await.unwrap();
        assert_eq!(asks(stage, "/v1/instances/create").get("auto_delete"), None);
    });
}

#[test]
fn the_system_is_the_wanted_one_or_the_newest_with_drivers() {
    on_stage(CLOUD, async |stage| {
        let mut order = order(stage, "hyperstack/A6000", "canada-1");
        let system = |stage: &Stage| asks(stage, "/v1/instances/create").get("os").cloned();
        let kind = |cloud: &str, systems: Value| {
            let size = json!({ "vcpus": 1, "memory_in_gb": 1, "os_options": systems });
            json!({ "cloud": cloud, "shade_instance_type": "A6000", "configuration": size })
        };
        // The first type is of another cloud, and would be the newest.
        let others = kind("elsewhere", json!(["ubuntu26.04_cuda13.1_shade_os"]));
        let types = json!({ "instance_types": [others, kind("hyperstack", json!(["debian12"]))] });
        instead(stage, Operation::Offers, &types);
        stage.cloud.launch(&order).await.unwrap();
        assert_eq!(system(stage), None, "no Ubuntu: it may choose itself");
        let (asked, _) = stage.server.asked(Operation::Offers).pop().unwrap();
        assert_eq!((asked.asked("cloud"), asked.asked("shade_instance_type")), (Some("hyperstack"), Some("A6000")));

        let user_data = Secret::new(SCRIPT);
        order.boot = Boot::CloudInit { image: Some("ubuntu20.04_cuda12.0_shade_os".to_owned()), user_data };
        stage.cloud.launch(&order).await.unwrap();
        assert_eq!(system(stage), Some(json!("ubuntu20.04_cuda12.0_shade_os")));

        order.boot = Boot::Talos { image: "x".to_owned(), config: Secret::new("x") };
        assert_eq!(stage.cloud.launch(&order).await.unwrap_err().outcome, Outcome::Invalid);
        assert_eq!(stage.server.asked(Operation::Launch).len(), 2, "what cannot be right is not sent");
    });
}

#[test]
fn what_cannot_be_looked_up_is_not_bought() {
    on_stage(CLOUD, async |stage| {
        let order = order(stage, "hyperstack/A6000", "canada-1");
        stage.server.trouble(Operation::Offers, Trouble::Status(502));
        let fault = stage.cloud.launch(&order).await.unwrap_err();
        assert_eq!((fault.outcome, fault.operation), (Outcome::Transient, Operation::Launch));
        instead(stage, Operation::Launch, &json!({ "id": "" }));
        assert_eq!(stage.cloud.launch(&order).await.unwrap_err().outcome, Outcome::Ambiguous, "no id, no machine");
        let unnamed = Order { machine: "A6000".to_owned(), ..order };
        assert_eq!(stage.cloud.launch(&unnamed).await.unwrap_err().outcome, Outcome::Invalid);
        assert_eq!(stage.server.asked(Operation::Launch).len(), 1);
    });
}

#[test]
fn every_region_is_an_offer_in_cents_and_no_container_is() {
    on_stage(CLOUD, async |stage| {
        let kind = |name: &str, gpu: &str, gpus: u32, deployed: Value, places: Value| {
            json!({ "cloud": "somecloud", "shade_instance_type": name, "hourly_price": 249, "deployment_type": deployed,
                "configuration": { "gpu_type": gpu, "num_gpus": gpus, "vram_per_gpu_in_gb": 80, "vcpus": 26,
                    "memory_in_gb": 225, "storage_in_gb": 512, "nvlink": null, "os_options": null },
                "availability": places })
        };
        let two = json!([{ "region": "a", "available": true }, { "region": "b", "available": false }]);
        let types = json!({ "instance_types": [
            kind("H100_sxm5x2", "H100_sxm5", 2, json!("vm"), two.clone()),
            kind("A100_80G", "A100_80G", 1, json!("baremetal"), json!([])),
            kind("GH200", "GH200", 1, Value::Null, Value::Null),
            kind("RTX4090", "RTX4090", 1, json!("container"), two),
        ] });
        instead(stage, Operation::Offers, &types);
        let offers = stage.cloud.offers().await.unwrap();
        let seen: Vec<_> = offers.iter().map(|one| (one.machine.as_str(), one.region.as_str(), one.sold_out)).collect();
        let right = [
            ("somecloud/H100_sxm5x2", "a", false),
            ("somecloud/H100_sxm5x2", "b", true),
            ("somecloud/A100_80G", "", true),
            ("somecloud/GH200", "", true),
        ];
        assert_eq!(seen, right);
        assert_eq!((offers[0].on_demand, offers[0].gpus), (Some(Money::from_micros(2_490_000)), 2000));
        assert_eq!((offers[0].gpu_memory_gib, offers[0].vcpus, offers[0].memory_mib), (Some(80), 26_000, 230_400));
        let names = [&offers[0], &offers[2]].map(|one| Gpu::named(&one.gpu).to_string());
        assert_eq!(names, ["H100-SXM", "A100-80GB"]);
        assert_eq!((offers[0].arch, offers[3].arch), (Arch::Amd64, Arch::Arm64));
    });
}

#[test]
fn ours_are_known_by_the_tag_and_else_by_the_name() {
    on_stage(CLOUD, async |stage| {
        let named =
            |id: &str, name: &str, tags: Value| json!({ "id": id, "status": "active", "name": name, "tags": tags });
        let all = json!({ "instances": [
            named("tagged", "renamed", json!(["tgp-cluster=1a2b3c4d"])),
            named("tagged", "renamed", json!(["tgp-cluster=1a2b3c4d"])),
            named("named", "tgp-1a2b3c4d-train-1", Value::Null),
            named("theirs", "tgp-1a2b3c4d-train-1", json!(["tgp-cluster=99999999"])),
            named("foreign", "web", json!([])),
        ] });
        instead(stage, Operation::List, &all);
        let listed = stage.cloud.list(&Stage::owner()).await.unwrap();
        assert_eq!(listed.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["tagged", "named"]);
        instead(stage, Operation::List, &json!({ "message": "nothing" }));
        assert_eq!(stage.cloud.list(&Stage::owner()).await.unwrap_err().outcome, Outcome::Transient);
    });
}

#[test]
fn an_end_is_asked_for_by_its_own_door() {
    on_stage(CLOUD, async |stage| {
        let machine = stage.cloud.launch(&order(stage, "hyperstack/A6000", "canada-1")).await.unwrap();
        stage.server.economy(|economy| economy.end_lag = Duration::from_secs(30));
        stage.cloud.terminate(&machine.id).await.unwrap();
        let (asked, _) = stage.server.asked(Operation::Terminate).pop().unwrap();
        assert_eq!((asked.method.as_str(), asked.path), ("POST", format!("/v1/instances/{}/delete", machine.id)));
        assert_eq!(stage.cloud.describe(&machine.id).await.unwrap().state, State::Terminating);
    });
}
