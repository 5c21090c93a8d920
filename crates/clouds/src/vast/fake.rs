// SPDX-License-Identifier: Apache-2.0
//! Vast's API as the specification describes it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bivouac_core::Money;
use serde_json::{Map, Value, json};

use crate::fake::{Answer, Economy, Fake, Fate, Good, Phase, Question, Refused, Rented, Shapes};
use crate::fault::Operation;

pub const SHAPES: &str = include_str!("shapes.yaml");

/// What a search may have besides fields with operators.
const WISHES: [&str; 4] = ["order", "limit", "type", "allocated_storage"];
/// So many offers come to whoever names no number.
const FEW: u64 = 64;
/// For a GB: dollars a month, and millionths an hour.
const STORAGE: (f64, i64) = (0.144, 200);
/// What the prices of our goods have in them.
const DISK: i64 = 100;
/// What the body of an order may have.
const KEYS: [&str; 13] = [
    "client_id",
    "image",
    "disk",
    "label",
    "env",
    "onstart",
    "runtype",
    "args",
    "image_login",
    "price",
    "target_state",
    "cancel_unavail",
    "template_hash_id",
];

pub struct FakeVast {
    key: String,
    shapes: Shapes,
}

// === impl FakeVast ===

impl FakeVast {
    pub fn new(key: &str, shapes: Shapes) -> Self {
        Self { key: key.to_owned(), shapes }
    }

    fn search(&self, question: &Question, economy: &Economy) -> Answer {
        let Some(body) = question.body.as_object() else { return self.shapes.refusal(Refused::Invalid) };
        let kind = question.text("/type");
        let filters: Vec<(&String, &Value)> = body.iter().filter(|(key, _)| !WISHES.contains(&key.as_str())).collect();
        if !["ondemand", "bid", "reserved"].contains(&kind) || !filters.iter().all(|(_, ops)| ops.is_object()) {
            return self.shapes.refusal(Refused::Invalid);
        }
        let sold = economy.goods.iter().filter(|good| kind != "bid" || good.spot.is_some());
        let mut all: Vec<Value> = sold.map(|good| self.offer(good, body)).collect();
        all.push(self.shapes.body("unverified", &BTreeMap::new()));
        all.retain(|offer| filters.iter().all(|(field, ops)| fits(offer.get(*field), ops)));
        let limit = body.get("limit").and_then(Value::as_u64).unwrap_or(FEW);
        all.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Answer::json(200, &json!({ "success": true, "offers": all }))
    }

    fn offer(&self, good: &Good, wish: &Map<String, Value>) -> Value {
        let disk = wish.get("allocated_storage").and_then(Value::as_i64).unwrap_or(5);
        let base = good.price.micros() - DISK * STORAGE.1;
        // A little less than what is on the box.
        let vram = (good.vram_gib * 1024).saturating_sub(12);
        let fill = BTreeMap::from([
            ("id", json!(good.machine.parse::<u64>().unwrap_or_default())),
            ("gpu", json!(good.gpu)),
            ("gpus", json!(good.gpus)),
            ("gpu_ram", json!(vram)),
            ("gpu_total_ram", json!(vram * good.gpus)),
            // Half of the machine: the cores are those of the share, the memory is that of the whole.
            ("cores", json!(good.vcpus * 2)),
            ("cores_effective", json!(f64::from(good.vcpus))),
            ("cpu_ram", json!(good.memory_gib * 1024 * 2)),
            ("disk_space", json!(f64::from(good.disk_gib))),
            ("dph_base", dollars(base)),
            ("dph_total", dollars(base + disk * STORAGE.1)),
            ("min_bid", good.spot.map_or(Value::Null, |spot| dollars(spot.micros()))),
            ("storage_cost", json!(STORAGE.0)),
            ("geolocation", place(good)),
            ("rentable", json!(good.stock > 0)),
            ("rented", json!(good.stock == 0)),
        ]);
        self.shapes.body("offer", &fill)
    }

    fn instance(&self, rented: &Rented, economy: &Economy) -> Value {
        let phase = economy.phase(rented);
        let address = (phase != Phase::Booting).then(|| rented.address());
        let env = rented.said("/env");
        let env: Vec<Value> = env.as_object().into_iter().flatten().map(|(name, value)| json!([name, value])).collect();
        let fill = BTreeMap::from([
            ("id", json!(number_of(&rented.id))),
            ("status", json!(self.shapes.word(phase))),
            ("label", json!(rented.name)),
            ("is_bid", json!(rented.spot)),
            ("ip", json!(address)),
            ("dph_total", dollars(rented.price.micros())),
            ("geolocation", place(&rented.good)),
            ("start", json!(economy.moment(rented.at).as_second())),
            ("env", json!(env)),
            ("image", rented.said("/image")),
            ("gpu", json!(rented.good.gpu)),
            ("gpus", json!(rented.good.gpus)),
        ]);
        self.shapes.body("instance", &fill)
    }

    fn rent(&self, question: &Question, economy: &mut Economy, offer: &str) -> Answer {
        let Some(body) = question.body.as_object() else { return self.shapes.refusal(Refused::Invalid) };
        let Some(good) = economy.goods.iter().find(|good| good.machine == offer).cloned() else {
            return self.shapes.refusal(Refused::NoCapacity);
        };
        let bid = body.get("price");
        if !is_order(body) || bid.is_some_and(|bid| !bid.is_number()) {
            return self.shapes.refusal(Refused::Invalid);
        }
        let label = question.text("/label");
        let rented = match economy.rent(offer, &good.region, bid.is_some(), label, question.body.clone()) {
            Ok(rented) => rented,
            Err(refused) => return self.shapes.refusal(refused),
        };
        let fill = BTreeMap::from([("id", json!(number_of(&rented.id)))]);
        let lowest = good.spot.map(|spot| dollars(spot.micros()));
        if bid.is_some_and(|bid| order(Some(bid), lowest.as_ref()) == Some(Ordering::Less)) {
            // The trap: it says no, and the machine is there, stopped.
            if let Some(left) = economy.rented.last_mut() {
                left.fate = Fate::Stopped;
            }
            return Answer::json(400, &self.shapes.body("low-bid", &fill));
        }
        Answer::json(200, &self.shapes.body("launched", &fill))
    }

    fn of_one(&self, question: &Question, economy: &mut Economy, number: &str) -> Answer {
        let ids: Vec<String> = economy.rented.iter().map(|rented| rented.id.clone()).collect();
        let id = ids.iter().find(|id| number_of(id).to_string() == number);
        let found = id.and_then(|id| economy.find(id));
        match (question.method == http::Method::DELETE, found) {
            (false, found) => {
                let instance = found.map(|rented| self.instance(rented, economy));
                Answer::json(200, &json!({ "instances": instance }))
            }
            (true, None) => self.shapes.refusal(Refused::NotFound),
            (true, Some(rented)) => {
                let id = rented.id.clone();
                economy.end(&id);
                Answer::json(200, &json!({ "success": true }))
            }
        }
    }
}

impl Fake for FakeVast {
    fn operation(&self, question: &Question) -> Operation {
        match question.route("/api/v0") {
            (_, path) if path == ["bundles"] => Operation::Offers,
            ("PUT", path) if path.first() == Some(&"asks") => Operation::Launch,
            ("DELETE", _) => Operation::Terminate,
            (_, path) if path == ["instances"] => Operation::List,
            (_, path) if path.first() == Some(&"instances") => Operation::Describe,
            _ => Operation::Verify,
        }
    }

    fn answer(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let (method, path) = question.route("/api/v0");
        // Every address ends with a slash; without one it leads nowhere.
        match (method, path.as_slice()) {
            _ if !question.path.ends_with('/') => self.shapes.refusal(Refused::NotFound),
            ("POST", ["bundles"]) => self.search(question, economy),
            ("PUT", ["asks", offer]) => self.rent(question, economy, offer),
            ("GET", ["instances"]) => {
                let all: Vec<Value> = economy.listed().iter().map(|one| self.instance(one, economy)).collect();
                Answer::json(200, &json!({ "instances_found": all.len(), "instances": all }))
            }
            ("GET" | "DELETE", ["instances", id]) => self.of_one(question, economy, id),
            ("GET", ["users", "current"]) => {
                let credit = dollars(economy.balance.micros());
                Answer::json(200, &self.shapes.body("user", &BTreeMap::from([("credit", credit)])))
            }
            _ => self.shapes.refusal(Refused::NotFound),
        }
    }

    fn knows(&self, question: &Question) -> bool {
        question.has_bearer(&self.key)
    }

    fn shapes(&self) -> &Shapes {
        &self.shapes
    }
}

/// Whether a field is as it is wanted.
fn fits(value: Option<&Value>, operators: &Value) -> bool {
    let Some(operators) = operators.as_object() else { return false };
    operators.iter().all(|(operator, wanted)| {
        let order = order(value, Some(wanted));
        let is_one_of = || wanted.as_array().is_some_and(|list| value.is_some_and(|value| list.contains(value)));
        match operator.as_str() {
            "eq" => value == Some(wanted) || order == Some(Ordering::Equal),
            "neq" => value != Some(wanted) && order != Some(Ordering::Equal),
            "lt" => order == Some(Ordering::Less),
            "lte" => order.is_some_and(Ordering::is_le),
            "gt" => order == Some(Ordering::Greater),
            "gte" => order.is_some_and(Ordering::is_ge),
            "in" => is_one_of(),
            "notin" => !is_one_of(),
            _ => false,
        }
    })
}

fn order(one: Option<&Value>, other: Option<&Value>) -> Option<Ordering> {
    one?.as_f64()?.partial_cmp(&other?.as_f64()?)
}

fn is_order(body: &Map<String, Value>) -> bool {
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
    let is_list = |value: &Value| value.as_array().is_some_and(|args| args.iter().all(Value::is_string));
    let is_map = |value: &Value| value.as_object().is_some_and(|env| env.values().all(Value::is_string));
    body.keys().all(|key| KEYS.contains(&key.as_str()))
        && text("client_id") == "me"
        && !text("image").is_empty()
        && ["ssh", "jupyter", "args"].contains(&text("runtype"))
        && body.get("disk").is_some_and(Value::is_number)
        && body.get("args").is_none_or(is_list)
        && body.get("env").is_none_or(is_map)
}

/// A town and its country.
fn place(good: &Good) -> Value {
    json!(format!("Somewhere, {}", good.region))
}

/// Its machines have numbers for ids.
fn number_of(id: &str) -> u32 {
    id.bytes().fold(2_166_136_261, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
}

/// A JSON number of dollars.
fn dollars(micros: i64) -> Value {
    serde_json::from_str(&Money::from_micros(micros).to_string()).unwrap_or_default()
}
