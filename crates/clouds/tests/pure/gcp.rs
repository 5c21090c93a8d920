// SPDX-License-Identifier: Apache-2.0

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bivouac_clouds::fake::{Answer, Trouble};
use bivouac_clouds::wire::Broken;
use bivouac_clouds::{Credentials, Operation, Outcome, State, find};
use bivouac_market::Capacity;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};

use crate::told::{on_stage, outcome_of_launch, state_of};

/// Made for this test, and good for nothing else.
const TEST_KEY: &str = "\
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCn4ts+EUY2HYE7CdhaF+igUlIyg1xFyBMOhrL1cHLKabeYhCMF\
H+ivWDT84Pghohy6AedVjdMiVM4iV/B/vjRdjx1GPwWJXNnJ3Vh18jcMEVtsUIXQZHKo11y+dRN40IfVQ6DnR7VFk5Eqdatb2VvR\
Cj6i6g6//qOhjWeRHc7JWuYgWI2W/L6VzE3Rb5mVIF7czjinwc+XbWrTJNJ46xS5TZuHNclazezmY7JlBwDwZPM3KeYiKIlJ6g7O\
QEOZqToqL6v8Sjpj5Ja+RJnrSwoYmQi5U56Qqxd2FZ91gru5AUAyr472PPVBJjFCjIuTNWvoS42kabmNL2CphzOyZ9tJAgMBAAEC\
ggEAC1PtQyTbPe+Dtr4VUQ7n7VlgnnPql/LGBmbkUFdEB5BWiP3xdvkONDaZbK6pT2um0I4sU8N8CYb7WanhWl01H1L2wLSj5P7U\
2yAKRfsP58qMBqTwQn1klyvg4CD6LV60q5kilDhsbMNmOh0ycMIbxeERFOECGcZOuCnYYRxHxaI2eOKmPB/E/okxcckc2Om0Jp8n\
kUNyCEo5FTsAhAlHIZuefKifkbBijE3B9k5tUjF/p24FqhJ26mvP/CqUXh49EJbWPkAIq+PgE1b7QJvsBPs3EfbQ/7s+ayG/lv7D\
1hvRHU+fg0OkEe9w8rdmT0hGY3bINQolvoNqOzUnJ3iUAQKBgQDcqO6N5eKbLK27HKWfFSJT/SgAPmppLX10ViygnbqyE9NIZX9b\
v05kar65fySC6rU0M5Cyd6PSkUEHVPuPR2BAf0tfMaMOrYWoL7gpnH8J4MrgxhJd4SaSK6xDA3kYsvr5XllG8e8xtJ1rvMg166oi\
HPB4K/tCxeQSUUVZ+J5RwQKBgQDCxjLSByFAkhirT8rePzye0+Ek0dYb+sTtX3CCf3/codhWIEJIbCUXb+62M8kKjIc69zptNKRh\
rx+vXN5R3TEOHQ+rybXwFnDDww28Zu2Kwo9IL5XV5oBX/0Hz2UwMkZCvM7NwuL7O658uwv81qI1kNVjJhqcJjiUrdR+OqT7biQKB\
gHzZlIhzDuFPyUi6b7dwBMlSzsQ8jIbQN1CQxZVnSVAiyYQH8aSevKMyhpF8L9NnK3nKx09DRE0K5KlaWy95ait0GthUxHa0lZBQ\
17mrk3GqYAAH8jJuBx3jWgdcurLP6hMYYBk1IGqWUA+6c+mWWuAMUb8c24CvaVk35K6AbkvBAoGBAIl07Kqyo3H5aPWFk2szf6mr\
aCne+Na4LEBFaZZ/OpJPmeh2TbDkuWyH7xShCVGriUhA7/ff/d5+g8LzrGZjztniAow/B2pPu/c78bazgRK7afkMtBbH3G291CKu\
iPAZzt0GhK2Zg/dt6+JJdWi98kL1LxrSL5IbwfmgZ8v7f0PZAoGAMBu9yU1Zu33xb0QdloR4LLW/4bQ9/B/3SVPJUPXHBgAQEhxS\
mSQbGnYyiTN7D39LbNn65NOZBASGQv9FHde1ZDUrSF0npZrulQrMGB86PF/+Aca5EWej31mV0TtNeH4cAFGAGg52GYVkug8Mit45\
i8+t6wbZ7Nl9HuhRQGfHsZM=\
";
const TEST_KEY_PUBLIC: &str = "\
MIIBCgKCAQEAp+LbPhFGNh2BOwnYWhfooFJSMoNcRcgTDoay9XByymm3mIQjBR/or1g0/OD4IaIcugHnVY3TIlTOIlfwf740XY8d\
Rj8FiVzZyd1YdfI3DBFbbFCF0GRyqNdcvnUTeNCH1UOg50e1RZORKnWrW9lb0Qo+ouoOv/6joY1nkR3OyVrmIFiNlvy+lcxN0W+Z\
lSBe3M44p8HPl21q0yTSeOsUuU2bhzXJWs3s5mOyZQcA8GTzNynmIiiJSeoOzkBDmak6Ki+r/Eo6Y+SWvkSZ60sKGJkIuVOekKsX\
dhWfdYK7uQFAMq+O9jz1QSYxQoyLkzVr6EuNpGm5jS9gqYczsmfbSQIDAQAB\
";

fn error(reason: &str, message: &str) -> Value {
    json!({ "error": { "message": message, "errors": [{ "reason": reason, "message": message }] } })
}

#[test]
fn every_code_means_one_thing() {
    for (status, reason, message, outcome) in [
        (403, "quotaExceeded", "Quota 'NVIDIA_L4_GPUS' exceeded.", Outcome::Quota),
        (403, "x", "Quota 'GPUS_ALL_REGIONS' exceeded.", Outcome::Quota),
        (403, "BILLING_DISABLED", "x", Outcome::Payment),
        (403, "x", "This API method requires billing to be enabled", Outcome::Payment),
        (401, "authError", "x", Outcome::Unauthorized),
        (403, "forbidden", "x", Outcome::Unauthorized),
        (403, "rateLimitExceeded", "x", Outcome::RateLimited { after: None }),
        (400, "invalid", "x", Outcome::Invalid),
        (409, "alreadyExists", "x", Outcome::Conflict),
        (503, "x", "The zone does not have enough resources available", Outcome::NoCapacity),
        (503, "backendError", "x", Outcome::Ambiguous),
    ] {
        assert_eq!(outcome_of_launch("gcp", status, &error(reason, message)), outcome, "{status} {reason} {message}");
    }
    for (code, outcome) in [
        ("ZONE_RESOURCE_POOL_EXHAUSTED", Outcome::NoCapacity),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", Outcome::NoCapacity),
        ("RESOURCE_POOL_EXHAUSTED", Outcome::NoCapacity),
        ("QUOTA_EXCEEDED", Outcome::Quota),
        ("RESOURCE_OPERATION_RATE_EXCEEDED", Outcome::RateLimited { after: None }),
        ("SOMETHING_NEW", Outcome::Ambiguous),
    ] {
        let failed =
            json!({ "name": "o", "status": "DONE", "error": { "errors": [{ "code": code, "message": "x" }] } });
        assert_eq!(outcome_of_launch("gcp", 200, &failed), outcome, "{code}");
    }
}

#[test]
fn every_word_is_a_state() {
    let instance = |status: &str, model: &str| json!({ "name": "n", "status": status, "zone": "x/zones/z-1", "scheduling": { "provisioningModel": model } });
    for (word, standard, spot) in [
        ("PROVISIONING", State::Pending, State::Pending),
        ("STAGING", State::Pending, State::Pending),
        ("REPAIRING", State::Pending, State::Pending),
        ("RUNNING", State::Running, State::Running),
        ("PENDING_STOP", State::Terminating, State::Terminating),
        ("STOPPING", State::Terminating, State::Interrupted),
        ("STOPPED", State::Stopped, State::Interrupted),
        ("TERMINATED", State::Stopped, State::Interrupted),
        ("SUSPENDING", State::Stopped, State::Stopped),
        ("SUSPENDED", State::Stopped, State::Stopped),
        ("DREAMING", State::Unknown, State::Unknown),
    ] {
        assert_eq!(state_of("gcp", "z-1/n", &instance(word, "STANDARD")), standard, "{word}");
        assert_eq!(state_of("gcp", "z-1/n", &instance(word, "SPOT")), spot, "{word} on spot");
    }
}

#[test]
fn a_spot_launch_is_as_the_specification_shows_it() {
    on_stage("gcp", async |stage| {
        let offers = stage.cloud.offers().await.unwrap();
        let mut order = stage.order_of(offers.iter().find(|offer| offer.spot.is_some()).unwrap(), 1);
        order.capacity = Capacity::Spot;
        order.tags.insert("Cost.Center/EU".to_owned(), "Übung".to_owned());
        stage.cloud.launch(&order).await.unwrap();
        let asked = stage.server.asked(Operation::Launch);
        let [(question, _)] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!(question.asked("requestId"), Some(order.token().as_str()));
        assert_eq!(question.path, "/compute/v1/projects/kit-gcp/zones/us-central1-a/instances");
        assert_eq!(
            question.body,
            json!({
                "name": "tgp-1a2b3c4d-train-1",
                "machineType": "zones/us-central1-a/machineTypes/g2-standard-4",
                "scheduling": {
                    "provisioningModel": "SPOT",
                    "instanceTerminationAction": "DELETE",
                    "onHostMaintenance": "TERMINATE",
                    "automaticRestart": false,
                    "maxRunDuration": { "seconds": "86400" },
                },
                "disks": [{ "boot": true, "autoDelete": true, "initializeParams": {
                    "sourceImage": "talos-of-the-kit",
                    "diskSizeGb": "100",
                    "diskType": "zones/us-central1-a/diskTypes/pd-balanced",
                } }],
                "networkInterfaces": [{ "network": "global/networks/default", "accessConfigs": [{ "type": "ONE_TO_ONE_NAT" }] }],
                "labels": {
                    "tgp-cluster": "1a2b3c4d",
                    "tgp-claim": "c1a10001-0000-4000-8000-000000000000",
                    "tgp-pool": "train",
                    "tgp-created": "1794722400",
                    "cost_center_eu": "_bung",
                },
                "metadata": { "items": [{ "key": "user-data", "value": "#cloud-config\n# the user data of the kit\n" }] },
            })
        );
    });
}

#[test]
fn loose_gpus_are_put_into_a_machine() {
    on_stage("gcp", async |stage| {
        let offers = stage.cloud.offers().await.unwrap();
        let loose = offers.iter().find(|offer| offer.machine.starts_with("n1-")).unwrap();
        let machine = stage.cloud.launch(&stage.order_of(loose, 1)).await.unwrap();
        assert_eq!(
            (machine.id.as_str(), machine.region.as_str()),
            ("us-central1-b/tgp-1a2b3c4d-train-1", "us-central1")
        );
        let body = stage.server.asked(Operation::Launch)[0].0.body.clone();
        assert_eq!(body["machineType"], "zones/us-central1-b/machineTypes/n1-standard-8");
        let kind = "zones/us-central1-b/acceleratorTypes/nvidia-tesla-t4";
        assert_eq!(body["guestAccelerators"], json!([{ "acceleratorType": kind, "acceleratorCount": 1 }]));
    });
}

#[test]
fn a_zone_that_was_not_asked_makes_the_listing_a_fault() {
    on_stage("gcp", async |stage| {
        let order = stage.order(1).await.unwrap();
        stage.cloud.launch(&order).await.unwrap();
        let silent = json!({ "zones/us-west1-a": { "warning": { "code": "UNREACHABLE" } } });
        for body in [
            json!({ "kind": "x", "items": silent }),
            json!({ "kind": "x", "items": {}, "unreachables": ["zones/us-west1-a"] }),
            json!({ "something": "else" }),
        ] {
            stage.server.trouble(Operation::List, Trouble::Instead(Answer::json(200, &body)));
            let fault = stage.cloud.list(&order.owner).await.unwrap_err();
            assert_eq!(fault.outcome, Outcome::Transient, "{body}");
        }
        assert_eq!(stage.cloud.list(&order.owner).await.unwrap().len(), 1);
    });
}

/// Somebody at the other end who hands out a token and remembers what was asked.
fn token_office(expires_in: u64) -> (bivouac_clouds::Line, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let line = bivouac_clouds::Line::new(tower::service_fn(move |request: Request<Bytes>| {
        let header = request.headers().get("authorization").map_or("-", |value| value.to_str().unwrap()).to_owned();
        let text = String::from_utf8(request.body().to_vec()).unwrap();
        seen.lock().unwrap().push(format!("{} {header} {text}", request.uri()));
        let body = match request.uri().path() {
            "/token" => json!({ "access_token": "ya29.a-token-of-the-office", "expires_in": expires_in }),
            _ => json!({ "name": "p", "quotas": [{ "metric": "GPUS_ALL_REGIONS", "limit": 8.0, "usage": 2.0 }] }),
        };
        async move { Ok::<_, Broken>(Response::new(Bytes::from(body.to_string()))) }
    }));
    (line, asked)
}

fn service_account() -> Credentials {
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{TEST_KEY}\n-----END PRIVATE KEY-----\n");
    let file =
        json!({ "type": "service_account", "project_id": "p", "client_email": "bot@p.example", "private_key": pem });
    Credentials::read(&file.to_string(), find("gcp").unwrap().fields).unwrap()
}

#[test]
fn a_service_account_signs_for_its_token() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let entry = find("google").unwrap();
        let (line, asked) = token_office(3600);
        let cloud = (entry.client)(&service_account(), line, entry.base).unwrap();
        let account = cloud.verify().await.unwrap();
        assert_eq!(account.notes, ["GPUS_ALL_REGIONS: 2 of 8 used"]);
        cloud.verify().await.unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(3500)).await;
        cloud.verify().await.unwrap();
        let asked = asked.lock().unwrap();
        let tokens: Vec<&String> = asked.iter().filter(|one| one.contains("/token")).collect();
        assert_eq!(tokens.len(), 2, "one for the first hour, one before it ends: {asked:?}");
        assert!(asked[0].starts_with("https://oauth2.googleapis.com/token - grant_type=urn"), "{}", asked[0]);
        assert!(
            asked[1].starts_with("https://compute.googleapis.com/compute/v1/projects/p Bearer ya29."),
            "{}",
            asked[1]
        );
        let assertion = tokens[0].rsplit_once("assertion=").unwrap().1;
        let (signed, signature) = assertion.rsplit_once('.').unwrap();
        let public = STANDARD.decode(TEST_KEY_PUBLIC).unwrap();
        ring::signature::UnparsedPublicKey::new(&ring::signature::RSA_PKCS1_2048_8192_SHA256, public)
            .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
            .unwrap();
        let claims: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap()).unwrap();
        assert_eq!(claims["iss"], "bot@p.example");
        assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
        assert!(!format!("{cloud:?}").contains("ya29"));
    });
}

#[test]
fn a_bad_service_account_says_what_is_missing() {
    let (line, _) = token_office(3600);
    let entry = find("gcp").unwrap();
    let says = |fields: Value| {
        let credentials = Credentials::read(&fields.to_string(), entry.fields).unwrap();
        (entry.client)(&credentials, line.clone(), entry.base).unwrap_err().to_string()
    };
    let begin = "gcp did not check the credential, because the credential is not accepted for this";
    assert_eq!(says(json!({})), format!("{begin} (the credential has no \"project_id\")"));
    assert_eq!(says(json!({ "project_id": "p" })), format!("{begin} (the credential has no \"client_email\")"));
    let bad = says(json!({ "project_id": "p", "client_email": "e", "private_key": "very-secret-text" }));
    assert_eq!(
        bad,
        format!("{begin} (the \"private_key\" of the credential cannot be used: it is no PEM text of a PKCS #8 key)")
    );
    assert_eq!(
        Credentials::read("no json", entry.fields).unwrap_err().to_string(),
        "the credential needs project_id, access_token: write it as JSON with these keys"
    );
}
