// SPDX-License-Identifier: Apache-2.0
//! DigitalOcean's own words, and what is special about it.

use bivouac_clouds::fake::{Answer, Refused, Trouble};
use bivouac_clouds::kit::Stage;
use bivouac_clouds::{Boot, Operation, Order, Outcome, Secret, State};
use bivouac_core::Money;
use bivouac_market::{Gpu, Listing};
use serde_json::{Value, json};

use crate::told::on_stage;
use crate::words::{asks, refused};

const CLOUD: &str = "digitalocean";
const CONFIG: &str = "version: v1alpha1\nmachine: {type: worker}\n";

fn order(stage: &Stage, machine: &str, region: &str) -> Order {
    let offer = Listing { machine: machine.to_owned(), region: region.to_owned(), gpus: 1000, ..Listing::default() };
    Order {
        claim: "5f0c2a4e-9d4b-4d38-9a55-6b2f4b0c1e77".to_owned(),
        claim_name: "train-x7k2p".to_owned(),
        boot: Boot::Talos { image: "194629105".to_owned(), config: Secret::new(CONFIG) },
        ..stage.order_of(&offer, 1)
    }
}

/// A machine as the cloud writes it.
fn written(id: u64, status: &str) -> Value {
    json!({
        "id": id, "name": "tgp-1a2b3c4d-train-x7k2p", "memory": 245760, "vcpus": 20, "disk": 720, "locked": false,
        "status": status, "created_at": "2026-11-15T06:00:00Z", "features": [], "kernel": null,
        "size": { "slug": "gpu-h100x1-80gb", "price_hourly": 3.39 }, "size_slug": "gpu-h100x1-80gb",
        "networks": { "v4": [
            { "ip_address": "10.10.0.2", "netmask": "255.255.0.0", "type": "private" },
            { "ip_address": "203.0.113.7", "netmask": "255.255.240.0", "gateway": "203.0.113.1", "type": "public" },
        ], "v6": [] },
        "region": { "slug": "nyc2", "name": "New York 2" }, "tags": ["tgp-cluster:1a2b3c4d", "tgp-claim:c-1"],
    })
}

fn instead(stage: &Stage, on: Operation, body: &Value) {
    stage.server.trouble(on, Trouble::Instead(Answer::json(200, body)));
}

#[test]
fn every_word_is_a_state() {
    let table = [
        ("new", State::Pending),
        ("active", State::Running),
        ("off", State::Stopped),
        ("archive", State::Gone),
        ("rebuilding", State::Unknown),
    ];
    on_stage(CLOUD, async |stage| {
        for (word, state) in table {
            instead(stage, Operation::Describe, &json!({ "droplet": written(3_164_444, word) }));
            let seen = stage.cloud.describe("3164444").await.unwrap();
            assert_eq!((seen.state, seen.word.as_str()), (state, word));
            assert_eq!(
                (seen.id.as_str(), seen.claim.as_deref(), seen.region.as_str()),
                ("3164444", Some("c-1"), "nyc2")
            );
            assert_eq!(seen.price, Some(Money::from_micros(3_390_000)));
            assert_eq!((seen.public_ip, seen.private_ip), ("203.0.113.7".parse().ok(), "10.10.0.2".parse().ok()));
            assert_eq!(seen.created.map(|at| at.as_second()), Some(1_794_722_400));
        }
        let bare = json!({ "droplet": { "id": 1, "status": "new", "networks": null, "size": null, "tags": null } });
        instead(stage, Operation::Describe, &bare);
        let seen = stage.cloud.describe("1").await.unwrap();
        assert_eq!((seen.state, seen.public_ip, seen.claim), (State::Pending, None, None));
    });
}

#[test]
fn every_refusal_means_one_thing() {
    use Operation::{Describe, Launch, List, Terminate, Verify};
    let says = |id: &str, text: &str| json!({ "id": id, "message": text, "request_id": "4d9d8375" });
    let entity = |text: &str| says("unprocessable_entity", text);
    let table = [
        (Launch, 422, entity("Size is not available in this region."), Outcome::NoCapacity),
        (Launch, 422, entity("Region is not available"), Outcome::NoCapacity),
        (Launch, 422, entity("gpu-h100x1-80gb is currently unavailable"), Outcome::NoCapacity),
        (Launch, 422, entity("creating this/these droplet(s) will exceed your droplet limit"), Outcome::Quota),
        (Launch, 422, entity("This size is currently restricted, please open a ticket"), Outcome::Quota),
        (Launch, 403, says("forbidden", "Your account is locked, contact support"), Outcome::Payment),
        (Verify, 403, says("forbidden", "account locked"), Outcome::Payment),
        (Launch, 403, says("Forbidden", "You are not authorized to perform this operation"), Outcome::Unauthorized),
        (Verify, 401, says("Unauthorized", "Unable to authenticate you"), Outcome::Unauthorized),
        (Launch, 422, entity("You specified an invalid image for Droplet creation."), Outcome::Invalid),
        (Launch, 422, entity("The image you specified is not available in the selected region"), Outcome::Invalid),
        (Launch, 500, says("server_error", "Unexpected server-side error"), Outcome::Ambiguous),
        (List, 503, says("service_unavailable", "Service unavailable"), Outcome::Transient),
        (Describe, 404, says("not_found", "The resource you were accessing could not be found."), Outcome::NotFound),
        (Terminate, 422, entity("Droplet already has a pending event."), Outcome::Transient),
    ];
    for (on, status, body, outcome) in table {
        assert_eq!(refused(CLOUD, on, status, &body), outcome, "{} {status} {body}", on.name());
    }
}

#[test]
fn too_often_ends_when_the_hour_does() {
    on_stage(CLOUD, async |stage| {
        let body = json!({ "id": "too_many_requests", "message": "API Rate limit exceeded." });
        let answer = Answer::json(429, &body).with_header("date", "Sun, 15 Nov 2026 06:00:00 GMT");
        let answer = answer.with_header("ratelimit-remaining", 0).with_header("ratelimit-reset", 1_794_722_400 + 90);
        stage.server.trouble(Operation::List, Trouble::Instead(answer));
        let fault = stage.cloud.list(&Stage::owner()).await.unwrap_err();
        assert_eq!(fault.outcome, Outcome::RateLimited { after: Some(std::time::Duration::from_secs(90)) });
    });
}

#[test]
fn a_launch_says_everything_in_its_own_form() {
    on_stage(CLOUD, async |stage| {
        let mut order = order(stage, "gpu-h100x1-80gb", "nyc2");
        order.tags.insert("team".to_owned(), "vision/lab é".to_owned());
        let machine = stage.cloud.launch(&order).await.unwrap();
        let tags = [
            "team:vision_lab__",
            "tgp-claim:5f0c2a4e-9d4b-4d38-9a55-6b2f4b0c1e77",
            "tgp-cluster:1a2b3c4d",
            "tgp-created:1794722400",
            "tgp-pool:train",
        ];
        assert_eq!(
            asks(stage, "/v2/droplets"),
            json!({
                "name": "tgp-1a2b3c4d-train-x7k2p", "region": "nyc2", "size": "gpu-h100x1-80gb", "image": 194_629_105,
                "ssh_keys": [512_189], "tags": tags, "user_data": CONFIG,
            })
        );
        assert!(machine.id.parse::<u64>().is_ok(), "{}", machine.id);
        assert_eq!((machine.state, machine.claim.as_ref()), (State::Pending, Some(&order.claim)));
    });
}

#[test]
fn one_key_is_made_for_all_launches() {
    on_stage(CLOUD, async |stage| {
        let order = order(stage, "gpu-h100x1-80gb", "nyc2");
        for _ in 0..2 {
            stage.cloud.launch(&order).await.unwrap();
            assert_eq!(asks(stage, "/v2/droplets")["ssh_keys"], json!([512_189]));
        }
        let mut theirs = order.clone();
        theirs.owner.0 = "99999999".to_owned();
        stage.cloud.launch(&theirs).await.unwrap();
        assert_eq!(asks(stage, "/v2/droplets")["ssh_keys"], json!([512_190]), "another cluster, another key");
    });
}

#[test]
fn a_key_that_cannot_be_made_is_a_launch_that_did_not_happen() {
    on_stage(CLOUD, async |stage| {
        let order = order(stage, "gpu-h100x1-80gb", "nyc2");
        stage.server.trouble(Operation::Verify, Trouble::Status(500));
        let fault = stage.cloud.launch(&order).await.unwrap_err();
        assert_eq!((fault.outcome, fault.operation), (Outcome::Transient, Operation::Launch));
        assert!(stage.server.asked(Operation::Launch).is_empty());
    });
}

#[test]
fn its_own_linux_has_the_drivers_of_the_machine() {
    let table = [
        ("nvidia_h100", 1000, None, json!("gpu-h100x1-base")),
        ("nvidia_h100", 8000, None, json!("gpu-h100x8-base")),
        ("amd_mi300x", 8000, None, json!("gpu-amd-base")),
        ("", 0, None, json!("ubuntu-24-04-x64")),
        ("nvidia_h100", 1000, Some("ubuntu-22-04-x64"), json!("ubuntu-22-04-x64")),
    ];
    on_stage(CLOUD, async |stage| {
        stage.server.economy(|economy| economy.goods.iter_mut().for_each(|good| good.stock += 10));
        for (gpu, gpus, image, right) in table {
            let boot = Boot::CloudInit { image: image.map(str::to_owned), user_data: Secret::new("#cloud-config\n") };
            let order = Order { gpu: gpu.to_owned(), gpus, boot, ..order(stage, "gpu-h100x1-80gb", "nyc2") };
            stage.cloud.launch(&order).await.unwrap();
            let body = asks(stage, "/v2/droplets");
            assert_eq!((&body["image"], &body["user_data"]), (&right, &json!("#cloud-config\n")));
        }
    });
}

#[test]
fn only_gpus_that_anybody_can_have_are_offered() {
    on_stage(CLOUD, async |stage| {
        let size = |slug: &str, regions: Value, available: Value, cards: Value| {
            json!({ "slug": slug, "memory": 245_760, "vcpus": 20, "disk": 720, "price_monthly": 2522.16,
                "price_hourly": 3.39, "regions": regions, "available": available, "gpu_info": cards })
        };
        let cards = json!({ "count": 8, "model": "nvidia_rtx6000_ada", "vram": { "amount": 384, "unit": "gib" } });
        let sizes = json!({ "sizes": [
            size("s-1vcpu-1gb", json!(["nyc1"]), json!(true), Value::Null),
            size("gpu-a", json!(["nyc2", "tor1"]), json!(true), cards.clone()),
            size("gpu-b", json!([]), json!(true), cards.clone()),
            size("gpu-c", json!(["nyc2"]), json!(false), cards.clone()),
            size("gpu-a-contracted", json!(["nyc2"]), json!(true), cards),
        ], "links": {}, "meta": { "total": 5 } });
        instead(stage, Operation::Offers, &sizes);
        let offers = stage.cloud.offers().await.unwrap();
        let seen: Vec<_> = offers.iter().map(|one| (one.machine.as_str(), one.region.as_str(), one.sold_out)).collect();
        let right = [("gpu-a", "nyc2", false), ("gpu-a", "tor1", false), ("gpu-b", "", true), ("gpu-c", "nyc2", true)];
        assert_eq!(seen, right);
        assert_eq!((offers[0].gpus, offers[0].gpu_memory_gib), (8000, Some(48)), "the memory told is that of all");
        assert_eq!(Gpu::named(&offers[0].gpu).to_string(), "RTX6000-ADA");
        assert_eq!((offers[0].on_demand, offers[0].vcpus), (Some(Money::from_micros(3_390_000)), 20_000));
    });
}

#[test]
fn ours_are_found_by_the_tag_and_else_by_the_name() {
    on_stage(CLOUD, async |stage| {
        let named =
            |id: u64, name: &str, tags: Value| json!({ "id": id, "status": "active", "name": name, "tags": tags });
        let tagged = json!({ "droplets": [
            named(1, "renamed", json!(["tgp-cluster:1a2b3c4d"])),
        ], "links": {}, "meta": { "total": 1 } });
        let with_gpu = json!({ "droplets": [
            named(1, "renamed", json!(["tgp-cluster:1a2b3c4d"])),
            named(2, "tgp-1a2b3c4d-train-1", json!([])),
            named(3, "tgp-1a2b3c4d-train-1", json!(["tgp-cluster:99999999"])),
            named(4, "web", Value::Null),
        ], "links": {}, "meta": { "total": 4 } });
        instead(stage, Operation::List, &tagged);
        instead(stage, Operation::List, &with_gpu);
        let listed = stage.cloud.list(&Stage::owner()).await.unwrap();
        assert_eq!(listed.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["1", "2"]);
        let queries: Vec<_> = stage.server.asked(Operation::List).into_iter().map(|(one, _)| one.query).collect();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let size = pair("per_page", "200");
        assert_eq!(queries[0], [size.clone(), pair("tag_name", "tgp-cluster:1a2b3c4d")]);
        assert_eq!(queries[1], [size, pair("type", "gpus")]);
    });
}

#[test]
fn half_a_list_is_none_however_it_is_halved() {
    on_stage(CLOUD, async |stage| {
        let page = |next: Value, total: u32| {
            json!({ "droplets": [written(7, "active"), written(7, "active")], "links": { "pages": { "next": next } },
                "meta": { "total": total } })
        };
        instead(stage, Operation::List, &page(Value::Null, 2));
        let fault = stage.cloud.list(&Stage::owner()).await.unwrap_err();
        assert_eq!(fault.outcome, Outcome::Transient, "the same machine twice is one");
        instead(stage, Operation::List, &page(json!("https://api.digitalocean.com/v2/droplets?cursor=x"), 1));
        let fault = stage.cloud.list(&Stage::owner()).await.unwrap_err();
        assert_eq!(fault.outcome, Outcome::Transient, "a next page that cannot be asked for");
        instead(stage, Operation::List, &page(json!("https://elsewhere.example/v2/droplets?page=2&per_page=200"), 1));
        assert_eq!(stage.cloud.list(&Stage::owner()).await.unwrap().len(), 1);
        let (asked, _) = stage.server.asked(Operation::List)[3].clone();
        assert_eq!((asked.path.as_str(), asked.asked("page")), ("/v2/droplets", Some("2")));
    });
}

#[test]
fn the_account_tells_its_limit_its_money_and_its_troubles() {
    on_stage(CLOUD, async |stage| {
        let account = stage.cloud.verify().await.unwrap();
        assert_eq!((account.machine_limit, account.balance), (Some(100), Some(Money::from_micros(100_000_000))));
        assert_eq!((account.name.as_deref(), account.notes.len()), (Some("Example Team"), 0));
        let body = json!({ "account": { "droplet_limit": 0, "email": "a@example.com", "status": "locked",
            "status_message": "Pay first.", "email_verified": false } });
        instead(stage, Operation::Verify, &body);
        stage.server.trouble(Operation::Verify, Trouble::Refuse(Refused::Forbidden));
        let account = stage.cloud.verify().await.unwrap();
        assert_eq!((account.machine_limit, account.balance), (Some(0), None));
        let notes = [
            "the account is \"locked\": Pay first.",
            "the address of the account is not verified",
            "the balance cannot be read: Unauthorized",
        ];
        assert_eq!(account.notes, notes);
    });
}
