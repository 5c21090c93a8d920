// SPDX-License-Identifier: Apache-2.0
//! Vultr's API as the specification describes it.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bivouac_core::Money;
use serde_json::{Value, json};

use crate::fake::{Answer, Economy, Fake, Good, Phase, Question, Refused, Rented, Shapes};
use crate::fault::Operation;

pub const SHAPES: &str = include_str!("shapes.yaml");

pub struct FakeVultr {
    key: String,
    shapes: Shapes,
}

// === impl FakeVultr ===

impl FakeVultr {
    pub fn new(key: &str, shapes: Shapes) -> Self {
        Self { key: key.to_owned(), shapes }
    }

    /// Every plan once, with the regions that have some left.
    fn plans(&self, economy: &Economy, metal: bool) -> Vec<Value> {
        let mut names: Vec<&str> = economy.goods.iter().map(|good| good.machine.as_str()).collect();
        names.retain(|name| is_metal(name) == metal);
        names.dedup();
        let mut plans: Vec<Value> = names.iter().filter_map(|name| self.plan(economy, name)).collect();
        if metal {
            plans.push(self.shapes.body("plain_metal", &BTreeMap::new()));
        }
        plans
    }

    fn plan(&self, economy: &Economy, name: &str) -> Option<Value> {
        let sold: Vec<&Good> = economy.goods.iter().filter(|good| good.machine == name).collect();
        let good = sold.first()?;
        let regions: Vec<&str> = sold.iter().filter(|good| good.stock > 0).map(|good| good.region.as_str()).collect();
        let fill = BTreeMap::from([
            ("machine", json!(name)),
            ("vcpus", json!(good.vcpus)),
            ("ram", json!(good.memory_gib * 1024)),
            ("disk", json!(good.disk_gib)),
            ("hourly", number(good.price)),
            // The bill ends growing after 28 days, so a month is no measure of an hour.
            ("monthly", number(Money::from_micros(good.price.micros() * 672))),
            ("vram", json!(good.vram_gib * good.gpus)),
            ("gpu", json!(good.gpu)),
            ("locations", json!(regions)),
        ]);
        Some(self.shapes.body(if is_metal(name) { "metal" } else { "plan" }, &fill))
    }

    fn machine(&self, rented: &Rented, economy: &Economy) -> Value {
        let phase = economy.phase(rented);
        let mut words = self.shapes.word(phase).split('/');
        let address = if phase == Phase::Booting { "0.0.0.0".to_owned() } else { rented.address() };
        let text = |value: Value| if value.is_null() { json!("") } else { value };
        let fill = BTreeMap::from([
            ("id", json!(rented.id)),
            ("ip", json!(address)),
            ("region", json!(rented.good.region)),
            ("machine", json!(rented.good.machine)),
            ("created", json!(second(economy.moment(rented.at)))),
            ("status", json!(words.next())),
            ("power", json!(words.next())),
            ("server", json!(words.next())),
            ("label", json!(rented.name)),
            ("hostname", text(rented.said("/hostname"))),
            ("tags", rented.said("/tags")),
            ("os_id", rented.said("/os_id")),
        ]);
        self.shapes.body(if is_metal(&rented.good.machine) { "bare_metal" } else { "instance" }, &fill)
    }

    fn launch(&mut self, question: &Question, economy: &mut Economy, metal: bool) -> Answer {
        let plan = question.text("/plan");
        let systems = self.shapes.body("systems", &BTreeMap::new());
        let system = question.body.pointer("/os_id").cloned().unwrap_or_default();
        let known = systems.as_array().into_iter().flatten().find(|one| one.pointer("/id") == Some(&system));
        let is_custom = known.and_then(|one| one.pointer("/family")) == Some(&json!("iso"));
        let from_network = !question.text("/ipxe_chain_url").is_empty();
        let encoded = STANDARD.decode(question.text("/user_data")).is_ok();
        let tagged = question.list("/tags").iter().all(Value::is_string);
        if known.is_none() || is_custom != from_network || !encoded || !tagged || is_metal(plan) != metal {
            return self.shapes.refusal(Refused::Invalid);
        }
        match economy.rent(plan, question.text("/region"), false, question.text("/label"), question.body.clone()) {
            Ok(rented) => Answer::json(202, &json!({ one(metal): self.machine(&rented, economy) })),
            Err(refused) => self.shapes.refusal(refused),
        }
    }

    fn list(&self, question: &Question, economy: &Economy, metal: bool) -> Answer {
        let listed = economy.listed().into_iter().filter(|rented| is_metal(&rented.good.machine) == metal);
        let tag = question.asked("tag").map(|tag| json!(tag));
        let tagged = |rented: &&Rented| {
            tag.as_ref().is_none_or(|tag| rented.said("/tags").as_array().is_some_and(|tags| tags.contains(tag)))
        };
        let all = listed.filter(tagged).map(|rented| self.machine(rented, economy)).collect();
        page(if metal { "bare_metals" } else { "instances" }, all, question, economy)
    }

    fn of_one(&self, question: &Question, economy: &mut Economy, id: &str, metal: bool) -> Answer {
        let found = economy.find(id).filter(|rented| is_metal(&rented.good.machine) == metal);
        let Some(rented) = found else { return self.shapes.refusal(Refused::NotFound) };
        if question.method == http::Method::DELETE {
            economy.end(id);
            return Answer::empty(204);
        }
        Answer::json(200, &json!({ one(metal): self.machine(rented, economy) }))
    }
}

impl Fake for FakeVultr {
    fn operation(&self, question: &Question) -> Operation {
        match question.route("/v2") {
            (_, path) if matches!(path.as_slice(), ["plans" | "plans-metal"]) => Operation::Offers,
            ("POST", path) if matches!(path.as_slice(), ["instances" | "bare-metals"]) => Operation::Launch,
            (_, path) if matches!(path.as_slice(), ["instances" | "bare-metals"]) => Operation::List,
            ("DELETE", path) if matches!(path.as_slice(), ["instances" | "bare-metals", _]) => Operation::Terminate,
            (_, path) if matches!(path.as_slice(), ["instances" | "bare-metals", _]) => Operation::Describe,
            _ => Operation::Verify,
        }
    }

    fn answer(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let (method, path) = question.route("/v2");
        match (method, path.as_slice()) {
            ("GET", ["plans"]) => page("plans", self.plans(economy, false), question, economy),
            ("GET", ["plans-metal"]) => page("plans_metal", self.plans(economy, true), question, economy),
            ("GET", ["os"]) => match self.shapes.body("systems", &BTreeMap::new()) {
                Value::Array(systems) => page("os", systems, question, economy),
                _ => self.shapes.refusal(Refused::Broken),
            },
            ("GET", ["account"]) => {
                // Money in hand is a debt below zero.
                let balance = number(Money::from_micros(-economy.balance.micros()));
                Answer::json(200, &self.shapes.body("account", &BTreeMap::from([("balance", balance)])))
            }
            ("POST", ["instances"]) => self.launch(question, economy, false),
            ("POST", ["bare-metals"]) => self.launch(question, economy, true),
            ("GET", ["instances"]) => self.list(question, economy, false),
            ("GET", ["bare-metals"]) => self.list(question, economy, true),
            ("GET" | "DELETE", ["instances", id]) => self.of_one(question, economy, id, false),
            ("GET" | "DELETE", ["bare-metals", id]) => self.of_one(question, economy, id, true),
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

fn is_metal(plan: &str) -> bool {
    plan.starts_with("vbm-")
}

fn one(metal: bool) -> &'static str {
    if metal { "bare_metal" } else { "instance" }
}

/// Moments are told to the second, with the zone in numbers.
fn second(moment: jiff::Timestamp) -> String {
    let whole = jiff::Timestamp::from_second(moment.as_second()).unwrap_or_default();
    whole.to_string().replace('Z', "+00:00")
}

/// Dollars as a number.
fn number(money: Money) -> Value {
    let text = format!("{}{}", if money.is_negative() { "-" } else { "" }, decimal(money.micros().unsigned_abs()));
    serde_json::from_str(&text).unwrap_or_default()
}

fn decimal(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn page(name: &str, all: Vec<Value>, question: &Question, economy: &Economy) -> Answer {
    let asked = |key: &str| question.asked(key).and_then(|text| text.trim_start_matches("from-").parse::<usize>().ok());
    let most = asked("per_page").unwrap_or(100).clamp(1, 500).min(economy.page);
    let first = asked("cursor").unwrap_or_default();
    let total = all.len();
    let next = match first + most {
        next if next < total => format!("from-{next}"),
        _ if economy.pages_go_round => "from-0".to_owned(),
        _ => String::new(),
    };
    let shown: Vec<Value> = all.into_iter().skip(first).take(most).collect();
    Answer::json(200, &json!({ name: shown, "meta": { "total": total, "links": { "next": next, "prev": "" } } }))
}
