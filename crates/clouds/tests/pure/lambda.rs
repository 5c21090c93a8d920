// SPDX-License-Identifier: Apache-2.0

use bivouac_clouds::fake::{Answer, Trouble};
use bivouac_clouds::{Operation, Outcome, State};
use bivouac_market::Arch;
use serde_json::{Value, json};

use crate::told::{described, on_stage, outcome_of_launch, refused_launch, state_of};

fn error(code: &str) -> Value {
    json!({ "error": { "code": code, "message": "words for people", "suggestion": "try again" } })
}

#[test]
fn every_code_means_one_thing() {
    for (status, code, outcome) in [
        (400, "instance-operations/launch/insufficient-capacity", Outcome::NoCapacity),
        (400, "global/quota-exceeded", Outcome::Quota),
        (403, "provider/quota-exceeded", Outcome::Quota),
        (403, "global/account-inactive", Outcome::Payment),
        (403, "global/invalid-api-key", Outcome::Unauthorized),
        (401, "global/invalid-api-key", Outcome::Unauthorized),
        (400, "global/invalid-parameters", Outcome::Invalid),
        (400, "global/invalid-address", Outcome::Invalid),
        (400, "global/duplicate", Outcome::Invalid),
        (404, "global/object-does-not-exist", Outcome::Invalid),
        (400, "instance-operations/launch/file-system-in-wrong-region", Outcome::Invalid),
        (409, "filesystems/filesystem-in-use", Outcome::Conflict),
        (503, "provider/internal-unavailable", Outcome::Ambiguous),
        (400, "something/new", Outcome::Invalid),
        (418, "something/newer", Outcome::Invalid),
        (500, "global/unknown", Outcome::Ambiguous),
    ] {
        assert_eq!(outcome_of_launch("lambda", status, &error(code)), outcome, "{status} {code}");
    }
    assert_eq!(
        refused_launch("lambda", 400, &error("instance-operations/launch/insufficient-capacity")).to_string(),
        "lambda did not launch a machine, because it has none left (status 400: words for people)"
    );
}

fn instance(status: &str, ip: Option<&str>) -> Value {
    json!({ "data": { "id": "i1", "status": status, "ip": ip } })
}

#[test]
fn every_word_is_a_state() {
    for (word, state) in [
        ("booting", State::Pending),
        ("active", State::Running),
        ("preempted", State::Interrupted),
        ("terminating", State::Terminating),
        ("terminated", State::Gone),
        ("unhealthy", State::Failed),
        ("napping", State::Unknown),
    ] {
        assert_eq!(state_of("lambda", "i1", &instance(word, Some("203.0.113.7"))), state, "{word}");
    }
    assert_eq!(state_of("lambda", "i1", &instance("active", None)), State::Pending, "nobody can reach it yet");
    assert_eq!(described("lambda", "i1", &instance("napping", None)).word, "napping");
}

#[test]
fn a_launch_is_as_the_specification_shows_it() {
    on_stage("lambda", async |stage| {
        let order = stage.order(1).await.unwrap();
        stage.cloud.launch(&order).await.unwrap();
        let asked = stage.server.asked(Operation::Launch);
        let [(question, _)] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!(
            question.body,
            json!({
                "region_name": "us-west-1",
                "instance_type_name": "gpu_1x_a10",
                "ssh_key_names": ["tgp-1a2b3c4d"],
                "name": "tgp-1a2b3c4d-train-1",
                "hostname": "tgp-1a2b3c4d-train-1",
                "image": { "family": "lambda-stack-24-04" },
                "tags": [
                    { "key": "tgp-claim", "value": "c1a10001-0000-4000-8000-000000000000" },
                    { "key": "tgp-cluster", "value": "1a2b3c4d" },
                    { "key": "tgp-created", "value": "1794722400" },
                    { "key": "tgp-pool", "value": "train" },
                ],
                "user_data": "#cloud-config\n# the user data of the kit\n",
            })
        );
        assert_eq!(question.path, "/api/v1/instance-operations/launch");
    });
}

#[test]
fn one_key_is_made_once() {
    on_stage("lambda", async |stage| {
        for number in 0..3 {
            let order = stage.order(number).await.unwrap();
            stage.cloud.launch(&order).await.unwrap();
        }
        let made = stage.server.asked(Operation::Verify).into_iter().filter(|(one, _)| one.method == "POST").count();
        assert_eq!(made, 1);
    });
}

#[test]
fn offers_read_names_and_descriptions() {
    on_stage("lambda", async |stage| {
        let offers = stage.cloud.offers().await.unwrap();
        let of = |machine: &str| offers.iter().find(|offer| offer.machine == machine).unwrap();
        assert_eq!(
            (of("gpu_8x_h100_sxm5").gpu.as_str(), of("gpu_8x_h100_sxm5").gpu_memory_gib),
            ("h100_sxm5", Some(80))
        );
        assert_eq!((of("gpu_1x_gh200").arch, of("gpu_1x_a10").arch), (Arch::Arm64, Arch::Amd64));
        assert!(of("gpu_8x_v100").sold_out);
        assert_eq!(of("gpu_1x_a10").on_demand.unwrap().to_string(), "0.75");
    });
}

#[test]
fn a_launch_without_a_machine_is_in_doubt() {
    on_stage("lambda", async |stage| {
        let order = stage.order(1).await.unwrap();
        let nothing = Answer::json(200, &json!({ "data": { "instance_ids": [] } }));
        stage.server.trouble(Operation::Launch, Trouble::Instead(nothing));
        assert_eq!(stage.cloud.launch(&order).await.unwrap_err().outcome, Outcome::Ambiguous);
    });
}
