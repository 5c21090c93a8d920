// SPDX-License-Identifier: Apache-2.0
//! Vultr's own words, and what is special about it.

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

const CONFIG: &str = "version: v1alpha1\nmachine: {type: worker}\n";
const CHAIN: &str = "https://pxe.factory.talos.dev/pxe/376567988ad370138ad8b2698212367b/v1.13.9/vultr-amd64";

fn order(stage: &Stage, machine: &str, region: &str) -> Order {
    let offer = Listing { machine: machine.to_owned(), region: region.to_owned(), ..Listing::default() };
    Order {
        claim: "5f0c2a4e-9d4b-4d38-9a55-6b2f4b0c1e77".to_owned(),
        claim_name: "train-x7k2p".to_owned(),
        boot: Boot::Talos { image: CHAIN.to_owned(), config: Secret::new(CONFIG) },
        ..stage.order_of(&offer, 1)
    }
}

/// A machine as the cloud writes it.
fn written(status: &str, power: &str, server: &str, ip: &str) -> Value {
    json!({ "instance": {
        "id": "4f0f12e5-1f84-404f-aa84-85f431ea5ec2", "os": "Custom Installed", "ram": 65536, "disk": 350,
        "main_ip": ip, "vcpu_count": 6, "region": "ewr", "plan": "vcg-a16-6c-64g-16vram",
        "date_created": "2026-11-15T06:00:00+00:00", "status": status, "power_status": power,
        "server_status": server, "v6_main_ip": null, "internal_ip": "10.1.0.4", "label": "tgp-1a2b3c4d-train-x7k2p",
        "hostname": "x", "tags": ["tgp-cluster=1a2b3c4d", "tgp-claim=c-1"], "features": [], "os_id": 159,
    } })
}

fn plans(name: &str, plans: &[Value]) -> Trouble {
    Trouble::Instead(Answer::json(200, &json!({ name: plans, "meta": { "total": plans.len() } })))
}

fn plan(id: &str, gpu: &str, vram: u32, locations: &[&str]) -> Value {
    json!({ "id": id, "vcpu_count": 2, "ram": 16384, "disk": 80, "monthly_cost": 43, "hourly_cost": 0.059,
        "type": "vcg", "gpu_vram_gb": vram, "gpu_type": gpu, "locations": locations })
}

/// What is offered if the cloud sells these.
async fn offered(virtual_ones: &[Value], metal: &[Value]) -> Vec<Listing> {
    let stage = Stage::of(bivouac_clouds::find("vultr").unwrap()).unwrap();
    stage.server.trouble(Operation::Offers, plans("plans", virtual_ones));
    stage.server.trouble(Operation::Offers, plans("plans_metal", metal));
    stage.cloud.offers().await.unwrap()
}

#[test]
fn three_words_make_a_state() {
    let table = [
        ("pending", "running", "none", "0.0.0.0", State::Pending),
        ("active", "running", "none", "203.0.113.7", State::Pending),
        ("active", "running", "locked", "203.0.113.7", State::Pending),
        ("active", "running", "installingbooting", "203.0.113.7", State::Pending),
        ("active", "stopped", "installingbooting", "203.0.113.7", State::Pending),
        ("active", "running", "ok", "203.0.113.7", State::Running),
        ("active", "running", "ok", "0.0.0.0", State::Pending),
        ("active", "stopped", "ok", "203.0.113.7", State::Stopped),
        ("suspended", "stopped", "ok", "203.0.113.7", State::Stopped),
        ("suspended", "running", "ok", "203.0.113.7", State::Stopped),
        ("resizing", "running", "ok", "203.0.113.7", State::Pending),
        ("active", "dreaming", "ok", "203.0.113.7", State::Unknown),
        ("active", "running", "melting", "203.0.113.7", State::Unknown),
        ("moving", "running", "ok", "203.0.113.7", State::Unknown),
    ];
    on_stage("vultr", async |stage| {
        for (status, power, server, ip, state) in table {
            let answer = Answer::json(200, &written(status, power, server, ip));
            stage.server.trouble(Operation::Describe, Trouble::Instead(answer));
            let seen = stage.cloud.describe("4f0f12e5").await.unwrap();
            assert_eq!(seen.state, state, "{status} {power} {server} {ip}");
            assert_eq!(seen.word, format!("{status}, {power}, {server}"));
            assert_eq!(seen.public_ip, ip.parse().ok().filter(|_| ip != "0.0.0.0"));
            assert_eq!((seen.claim.as_deref(), seen.region.as_str()), (Some("c-1"), "ewr"));
            assert_eq!(seen.private_ip, "10.1.0.4".parse().ok());
            assert_eq!(seen.created.map(|at| at.as_second()), Some(1_794_722_400));
        }
    });
}

#[test]
fn every_refusal_means_one_thing() {
    use Operation::{Describe, Launch, List, Terminate, Verify};
    let says = |text: &str, status: u16| json!({ "error": text, "status": status });
    let rate = Outcome::RateLimited { after: Some(std::time::Duration::from_secs(5)) };
    let table = [
        (Launch, 400, says("Plan is not available in the selected region.", 400), Outcome::NoCapacity),
        (Launch, 404, says("This plan is currently unavailable there", 404), Outcome::NoCapacity),
        (Launch, 400, says("vcg-a40 is sold out", 400), Outcome::NoCapacity),
        (Launch, 403, says("Server add failed: account limit reached", 403), Outcome::Quota),
        (Launch, 400, says("You have reached the maximum monthly fee limit for this account.", 400), Outcome::Quota),
        (Launch, 402, says("", 402), Outcome::Payment),
        (Launch, 400, says("Please settle your account BALANCE", 400), Outcome::Payment),
        (Launch, 401, says("Invalid API token.", 401), Outcome::Unauthorized),
        (Verify, 401, says("Unauthorized IP address: 192.0.2.1", 401), Outcome::Unauthorized),
        (Verify, 403, says("Not on the IP access list", 403), Outcome::Unauthorized),
        (List, 429, says("Too many requests", 429), rate),
        (List, 503, says("Your request exceeded the API rate limit", 503), Outcome::RateLimited { after: None }),
        (List, 503, says("Service unavailable", 503), Outcome::Transient),
        (Launch, 503, says("Service unavailable", 503), Outcome::Ambiguous),
        (Launch, 400, says("Invalid plan chosen.", 400), Outcome::Invalid),
        (Launch, 422, says("hostname has strange letters", 422), Outcome::Invalid),
        (Launch, 404, says("Invalid region.", 404), Outcome::Invalid),
        (Describe, 404, says("Invalid instance-id.", 404), Outcome::NotFound),
        (Terminate, 400, says("This server is currently locked.", 400), Outcome::Transient),
        (Terminate, 500, says("Unable to destroy server", 500), Outcome::Transient),
    ];
    for (on, status, body, outcome) in table {
        assert_eq!(refused("vultr", on, status, &body), outcome, "{} {status} {body}", on.name());
    }
}

#[test]
fn a_launch_asks_for_talos_from_the_network() {
    on_stage("vultr", async |stage| {
        let order = order(stage, "vcg-a16-6c-64g-16vram", "ewr");
        let machine = stage.cloud.launch(&order).await.unwrap();
        assert_eq!(
            asks(stage, "/v2/instances"),
            json!({
                "region": "ewr", "plan": "vcg-a16-6c-64g-16vram", "os_id": 159, "ipxe_chain_url": CHAIN,
                "label": "tgp-1a2b3c4d-train-x7k2p", "hostname": "tgp-1a2b3c4d-train-x7k2p",
                "tags": ["tgp-claim=5f0c2a4e-9d4b-4d38-9a55-6b2f4b0c1e77", "tgp-cluster=1a2b3c4d",
                    "tgp-created=1794722400", "tgp-pool=train"],
                "user_data": STANDARD.encode(CONFIG), "backups": "disabled", "activation_email": false,
            })
        );
        assert_eq!((machine.state, machine.public_ip), (State::Pending, None));
        assert_eq!(machine.claim.as_ref(), Some(&order.claim));
    });
}

#[test]
fn its_own_linux_is_the_newest_ubuntu_with_long_support() {
    on_stage("vultr", async |stage| {
        let mut order = order(stage, "vcg-a16-6c-64g-16vram", "ewr");
        let user_data = Secret::new("#cloud-config\n");
        for (image, system) in [(None, 2571), (Some("1743".to_owned()), 1743)] {
            order.boot = Boot::CloudInit { image, user_data: user_data.clone() };
            stage.cloud.launch(&order).await.unwrap();
            let body = asks(stage, "/v2/instances");
            assert_eq!(body["os_id"], json!(system));
            assert_eq!(
                (body.get("ipxe_chain_url"), &body["user_data"]),
                (None, &json!(STANDARD.encode("#cloud-config\n")))
            );
        }
        order.boot = Boot::CloudInit { image: Some("ubuntu".to_owned()), user_data };
        assert_eq!(stage.cloud.launch(&order).await.unwrap_err().outcome, Outcome::Invalid);
        assert_eq!(stage.server.asked(Operation::Launch).len(), 2, "what cannot be right is not sent");
    });
}

#[test]
fn bare_metal_is_told_apart_all_its_life() {
    on_stage("vultr", async |stage| {
        let order = order(stage, "vbm-112c-2048gb-8-h100-gpu", "sjc");
        let machine = stage.cloud.launch(&order).await.unwrap();
        let body = asks(stage, "/v2/bare-metals");
        assert_eq!((body.get("backups"), &body["ipxe_chain_url"]), (None, &json!(CHAIN)));
        let theirs = stage.server.economy(|economy| economy.rented[0].id.clone());
        assert_eq!(machine.id, format!("bm-{theirs}"));
        assert_eq!(machine.word, "active", "it has one word only");
        assert_eq!(stage.cloud.describe(&theirs).await.unwrap_err().outcome, Outcome::NotFound);
        assert_eq!(stage.cloud.list(&Stage::owner()).await.unwrap()[0].id, machine.id);
        tokio::time::sleep(std::time::Duration::from_secs(90)).await;
        assert_eq!(stage.cloud.describe(&machine.id).await.unwrap().state, State::Running);
        stage.cloud.terminate(&machine.id).await.unwrap();
        assert_eq!(stage.server.asked(Operation::Terminate)[0].0.path, format!("/v2/bare-metals/{theirs}"));
        assert!(stage.server.economy(|economy| economy.rented[0].ended.is_some()));
    });
}

#[test]
fn parts_of_a_card_are_counted_in_thousandths() {
    let table = [
        ("NVIDIA_A16", 4, 250, 4),
        ("NVIDIA_A16", 16, 1000, 16),
        ("NVIDIA_A16", 128, 8000, 16),
        ("NVIDIA_A40", 2, 41, 2),
        ("NVIDIA_A100", 10, 125, 10),
        ("NVIDIA_A100", 40, 500, 40),
        ("NVIDIA_A100", 320, 4000, 80),
        ("NVIDIA_L40S", 384, 8000, 48),
        ("NVIDIA_H100", 640, 8000, 80),
        ("AMD_MI300X", 1536, 8000, 192),
    ];
    on_stage("vultr", async |_| {
        for (gpu, vram, gpus, memory) in table {
            let offers = offered(&[plan("vcg-one", gpu, vram, &["ewr"])], &[]).await;
            let [offer] = offers.as_slice() else { panic!("{offers:?}") };
            assert_eq!((offer.gpus, offer.gpu_memory_gib), (gpus, Some(memory)), "{gpu} {vram}");
            assert_eq!(offer.on_demand, Some(Money::from_micros(59_000)), "not a part of the month");
            assert_eq!((offer.vcpus, offer.memory_mib, offer.sold_out), (2000, 16384, false));
        }
        let offers = offered(&[plan("vcg-one", "NVIDIA_A100", 80, &["ewr"])], &[]).await;
        assert!(Gpu::named(&offers[0].gpu).fits(&Gpu::named("A100-80GB")), "all its A100 have 80 GB");
    });
}

#[test]
fn a_plan_without_a_place_is_sold_out() {
    on_stage("vultr", async |_| {
        let plans = [plan("vcg-none", "NVIDIA_A40", 48, &[]), plan("vcg-two", "NVIDIA_A40", 48, &["ewr", "ord"])];
        let offers = offered(&plans, &[]).await;
        let seen: Vec<_> = offers.iter().map(|one| (one.machine.as_str(), one.region.as_str(), one.sold_out)).collect();
        assert_eq!(seen, [("vcg-none", "", true), ("vcg-two", "ewr", false), ("vcg-two", "ord", false)]);
    });
}

#[test]
fn cards_of_bare_metal_are_read_from_the_name_of_the_plan() {
    let metal = |id: &str| {
        json!({ "id": id, "cpu_threads": 224, "ram": 2097152, "disk": 960, "monthly_cost": 16074.24,
        "hourly_cost": 23.92, "locations": ["sjc"] })
    };
    on_stage("vultr", async |_| {
        let ids =
            ["vbm-112c-2048gb-8-h100-gpu", "vbm-256c-2048gb-8-mi300x-gpu", "vbm-72c-480gb-gh200-gpu", "vbm-8c-132gb"];
        let offers = offered(&[], &ids.map(metal)).await;
        let seen: Vec<_> = offers.iter().map(|one| (Gpu::named(&one.gpu).to_string(), one.gpus, one.arch)).collect();
        let right = [("H100", 8000, Arch::Amd64), ("MI300X", 8000, Arch::Amd64), ("GH200", 1000, Arch::Arm64)];
        assert_eq!(seen, right.map(|(gpu, gpus, arch)| (gpu.to_owned(), gpus, arch)));
        assert_eq!(offers[0].on_demand, Some(Money::from_micros(23_920_000)));
        assert_eq!((offers[0].vcpus, offers[0].gpu_memory_gib), (224_000, Some(80)));
    });
}

#[test]
fn fewer_machines_than_it_says_are_no_list() {
    on_stage("vultr", async |stage| {
        let one = written("active", "running", "ok", "203.0.113.7")["instance"].clone();
        let page =
            |total: usize| json!({ "instances": [one, one], "meta": { "total": total, "links": { "next": "" } } });
        stage.server.trouble(Operation::List, Trouble::Instead(Answer::json(200, &page(2))));
        let fault = stage.cloud.list(&Stage::owner()).await.unwrap_err();
        assert_eq!(fault.outcome, Outcome::Transient, "the same machine twice is one");
        stage.server.trouble(Operation::List, Trouble::Instead(Answer::json(200, &page(1))));
        assert_eq!(stage.cloud.list(&Stage::owner()).await.unwrap().len(), 1);
    });
}

#[test]
fn ours_are_known_by_the_tag_and_else_by_the_name() {
    on_stage("vultr", async |stage| {
        let one = |id: &str, label: &str, tags: Value| {
            let status = "active";
            json!({ "id": id, "status": status, "label": label, "tags": tags, "region": null })
        };
        let all = json!({ "instances": [
            one("tagged", "renamed by somebody", json!(["tgp-cluster=1a2b3c4d"])),
            one("named", "tgp-1a2b3c4d-train-1", Value::Null),
            one("theirs", "tgp-1a2b3c4d-train-1", json!(["tgp-cluster=99999999"])),
            one("longer", "x", json!(["tgp-cluster=1a2b3c4d5"])),
            one("foreign", "web", json!([])),
        ], "meta": null });
        stage.server.trouble(Operation::List, Trouble::Instead(Answer::json(200, &all)));
        let listed = stage.cloud.list(&Stage::owner()).await.unwrap();
        let ids: Vec<&str> = listed.iter().map(|machine| machine.id.as_str()).collect();
        assert_eq!(ids, ["tagged", "named"]);
    });
}

#[test]
fn the_account_tells_its_money_and_what_the_key_may_not() {
    on_stage("vultr", async |stage| {
        let account = stage.cloud.verify().await.unwrap();
        assert_eq!(account.balance, Some(Money::from_micros(87_500_000)), "100 in hand, 12.50 not billed yet");
        assert_eq!(account.name.as_deref(), Some("Example Company"));
        assert_eq!(account.notes.len(), 1);
        let body = json!({ "account": { "balance": "10.25", "acls": ["subscriptions"], "name": null } });
        stage.server.trouble(Operation::Verify, Trouble::Instead(Answer::json(200, &body)));
        let account = stage.cloud.verify().await.unwrap();
        assert_eq!(account.balance, Some(Money::from_micros(-10_250_000)));
        assert_eq!(account.notes, ["the key has no right of \"provisioning\""]);
    });
}
