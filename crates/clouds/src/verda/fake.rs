// SPDX-License-Identifier: Apache-2.0
//! Verda's API as the specification describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bivouac_core::ids::uuid_of;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fake::{Answer, Economy, Fake, Phase, Question, Refused, Rented, Shapes};
use crate::fault::Operation;

pub const SHAPES: &str = include_str!("shapes.yaml");
const KEY: &str = "5b7e1a52-0c1e-4f8d-9a53-2f9d3f3f7a77";
const LIFE: Duration = Duration::from_secs(3600);

pub struct FakeVerda {
    id: String,
    secret: String,
    shapes: Shapes,
    tokens: Vec<(String, Instant)>,
    /// Id and name.
    scripts: Vec<(String, String)>,
    /// Volumes that somebody pays for.
    volumes: BTreeSet<String>,
    keeps_what_it_makes: bool,
}

// === impl FakeVerda ===

impl FakeVerda {
    pub fn new(id: &str, secret: &str, shapes: Shapes) -> Self {
        let (id, secret) = (id.to_owned(), secret.to_owned());
        let (tokens, scripts, volumes) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { id, secret, shapes, tokens, scripts, volumes, keeps_what_it_makes: false }
    }

    /// As the real one: what is being made cannot be ended.
    pub fn that_keeps_what_it_makes(self) -> Self {
        Self { keeps_what_it_makes: true, ..self }
    }

    fn token(&mut self, question: &Question) -> Answer {
        let right = question.text("/grant_type") == "client_credentials"
            && question.text("/client_id") == self.id
            && question.text("/client_secret") == self.secret;
        if !right {
            return self.shapes.refusal(Refused::Unauthorized);
        }
        let token = format!("token-of-verda-number-{:04}", self.tokens.len());
        self.tokens.push((token.clone(), Instant::now() + LIFE));
        let fill = BTreeMap::from([
            ("token", json!(token)),
            ("refresh", json!(format!("renewal-at-verda-{:04}", self.tokens.len() - 1))),
        ]);
        Answer::json(200, &self.shapes.body("token", &fill))
    }

    fn types(&self, economy: &Economy) -> Vec<Value> {
        let names: BTreeSet<&str> = economy.goods.iter().map(|good| good.machine.as_str()).collect();
        let goods = names.into_iter().filter_map(|name| economy.goods.iter().find(|good| good.machine == name));
        let one = |good: &crate::fake::Good| {
            let fill = BTreeMap::from([
                ("id", json!(uuid_of(&good.machine))),
                ("machine", json!(good.machine)),
                ("gpu", json!(good.gpu)),
                ("gpu_long", json!(format!("{}x {}", good.gpus, good.gpu))),
                ("price", json!(good.price.to_string())),
                ("spot", json!(good.spot.map_or("0.000".to_owned(), |spot| spot.to_string()))),
                ("vcpus", json!(good.vcpus)),
                ("gpus", json!(good.gpus)),
                ("vram", json!(good.vram_gib * good.gpus)),
                ("memory", json!(good.memory_gib)),
            ]);
            self.shapes.body("type", &fill)
        };
        goods.map(one).collect()
    }

    fn places(&self, economy: &Economy) -> BTreeSet<String> {
        economy.goods.iter().map(|good| good.region.clone()).collect()
    }

    fn locations(&self, economy: &Economy) -> Vec<Value> {
        let places = self.places(economy).into_iter();
        places.map(|code| self.shapes.body("location", &BTreeMap::from([("code", json!(code))]))).collect()
    }

    fn availability(&self, question: &Question, economy: &Economy) -> Vec<Value> {
        let spot = question.asked("is_spot") == Some("true");
        let at = |code: String| {
            let here = economy.goods.iter().filter(|good| good.region == code && good.stock > 0);
            let machines: Vec<&str> =
                here.filter(|good| !spot || good.spot.is_some()).map(|good| good.machine.as_str()).collect();
            let fill = BTreeMap::from([("code", json!(code)), ("machines", json!(machines))]);
            self.shapes.body("available", &fill)
        };
        self.places(economy).into_iter().map(at).collect()
    }

    fn instance(&self, rented: &Rented, economy: &Economy) -> Value {
        let (good, phase) = (&rented.good, economy.phase(rented));
        let ip = (phase == Phase::Running).then(|| rented.address());
        self.shapes.body(
            "instance",
            &BTreeMap::from([
                ("id", json!(uuid_of(&rented.id))),
                ("machine", json!(good.machine)),
                ("image", rented.said("/image")),
                ("price", serde_json::from_str(&rented.price.to_string()).unwrap_or_default()),
                ("hostname", json!(rented.name)),
                ("description", rented.said("/description")),
                ("ip", json!(ip)),
                ("status", json!(self.shapes.word(phase))),
                ("created", json!(format!("{:.3}", economy.moment(rented.at)))),
                ("vcpus", json!(good.vcpus)),
                ("gpu", json!(good.gpu)),
                ("gpus", json!(good.gpus)),
                ("location", json!(good.region)),
                ("is_spot", json!(rented.spot)),
                ("volume", json!(volume_of(rented))),
                ("script", rented.said("/startup_script_id")),
                ("contract", rented.said("/contract")),
            ]),
        )
    }

    fn create(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let script = self.scripts.iter().any(|(id, _)| id == question.text("/startup_script_id"));
        let size = question.body.pointer("/os_volume/size").and_then(Value::as_u64).unwrap_or_default();
        let keys = question.list("/ssh_key_ids").iter().all(|key| key.as_str() == Some(KEY));
        let spot = question.body.pointer("/is_spot").and_then(Value::as_bool).unwrap_or_default();
        let contract = if spot { "SPOT" } else { "PAY_AS_YOU_GO" };
        let name = question.text("/hostname");
        if !script || size < 50 || !keys || question.text("/contract") != contract || name.is_empty() {
            return self.shapes.refusal(Refused::Invalid);
        }
        let (machine, place) = (question.text("/instance_type"), question.text("/location_code"));
        match economy.rent(machine, place, spot, name, question.body.clone()) {
            Ok(rented) => {
                self.volumes.insert(volume_of(&rented));
                Answer { body: uuid_of(&rented.id).into_bytes().into(), ..Answer::empty(202) }
            }
            Err(refused) => self.shapes.refusal(refused),
        }
    }

    fn act(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let id = question.text("/id");
        let Some(rented) = found(economy, id) else { return self.shapes.refusal(Refused::NotFound) };
        if question.text("/action") != "delete" {
            return self.shapes.refusal(Refused::Invalid);
        }
        if self.keeps_what_it_makes && economy.phase(&rented) == Phase::Booting {
            return Answer::json(400, &self.shapes.body("provisioning", &BTreeMap::new()));
        }
        economy.end(&rented.id);
        let for_good = question.body.pointer("/delete_permanently") == Some(&json!(true));
        for volume in question.list("/volume_ids").iter().filter_map(Value::as_str).filter(|_| for_good) {
            self.volumes.remove(volume);
        }
        Answer::empty(202)
    }

    fn make_script(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        if question.text("/name").is_empty() || !question.text("/script").starts_with("#!") {
            return self.shapes.refusal(Refused::Invalid);
        }
        let id = uuid_of(&economy.id());
        self.scripts.push((id.clone(), question.text("/name").to_owned()));
        Answer { body: id.into_bytes().into(), ..Answer::empty(201) }
    }

    fn drop_script(&mut self, id: &str) -> Answer {
        let before = self.scripts.len();
        self.scripts.retain(|(one, _)| one != id);
        if before == self.scripts.len() { self.shapes.refusal(Refused::NotFound) } else { Answer::empty(200) }
    }
}

impl Fake for FakeVerda {
    fn operation(&self, question: &Question) -> Operation {
        let (method, path) = question.route("/v1");
        match (method, path.as_slice()) {
            (_, ["instance-types" | "instance-availability" | "locations"]) => Operation::Offers,
            ("POST", ["instances"]) => Operation::Launch,
            ("PUT", ["instances"]) => Operation::Terminate,
            (_, ["instances"]) => Operation::List,
            (_, ["instances", _]) => Operation::Describe,
            _ => Operation::Verify,
        }
    }

    fn answer(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let (method, path) = question.route("/v1");
        match (method, path.as_slice()) {
            ("POST", ["oauth2", "token"]) => self.token(question),
            ("GET", ["instance-types"]) => Answer::json(200, &json!(self.types(economy))),
            ("GET", ["instance-availability"]) => Answer::json(200, &json!(self.availability(question, economy))),
            ("GET", ["locations"]) => Answer::json(200, &json!(self.locations(economy))),
            ("GET", ["sshkeys"]) => {
                Answer::json(200, &json!([{ "id": KEY, "name": "kit", "key": "ssh-ed25519 AAAA" }]))
            }
            ("GET", ["balance"]) => {
                let amount: Value = serde_json::from_str(&economy.balance.to_string()).unwrap_or_default();
                Answer::json(200, &json!({ "amount": amount, "currency": "usd" }))
            }
            ("GET", ["volumes"]) => Answer::json(200, &json!(self.volumes)),
            ("GET", ["scripts"]) => {
                let one = |(id, name): &(String, String)| json!({ "id": id, "name": name, "script": "#!/bin/sh" });
                Answer::json(200, &json!(self.scripts.iter().map(one).collect::<Vec<_>>()))
            }
            ("POST", ["scripts"]) => self.make_script(question, economy),
            ("DELETE", ["scripts", id]) => self.drop_script(id),
            ("POST", ["instances"]) => self.create(question, economy),
            ("PUT", ["instances"]) => self.act(question, economy),
            ("GET", ["instances"]) => {
                let all: Vec<Value> = economy.listed().iter().map(|one| self.instance(one, economy)).collect();
                Answer::json(200, &json!(all))
            }
            ("GET", ["instances", id]) => match found(economy, id) {
                Some(rented) => Answer::json(200, &self.instance(&rented, economy)),
                None => self.shapes.refusal(Refused::NotFound),
            },
            _ => self.shapes.refusal(Refused::NotFound),
        }
    }

    /// Whoever asks for a token says in the question who he is.
    fn knows(&self, question: &Question) -> bool {
        let good = |(token, until): &(String, Instant)| Instant::now() < *until && question.has_bearer(token);
        question.path.ends_with("/oauth2/token") || self.tokens.iter().any(good)
    }

    fn shapes(&self) -> &Shapes {
        &self.shapes
    }
}

/// Ids are UUIDs here.
fn found(economy: &Economy, id: &str) -> Option<Rented> {
    let own = economy.rented.iter().find(|one| uuid_of(&one.id) == id)?.id.clone();
    economy.find(&own).cloned()
}

fn volume_of(rented: &Rented) -> String {
    uuid_of(&format!("volume of {}", rented.id))
}
