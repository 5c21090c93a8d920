// SPDX-License-Identifier: Apache-2.0
//! DigitalOcean's API as the specification describes it.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bivouac_core::Money;
use serde_json::{Value, json};

use crate::fake::{Answer, Economy, Fake, Good, Phase, Question, Refused, Rented, Shapes};
use crate::fault::Operation;

pub const SHAPES: &str = include_str!("shapes.yaml");

pub struct FakeDigitalOcean {
    key: String,
    shapes: Shapes,
    /// Names and public halves.
    ssh_keys: Vec<(String, String)>,
}

/// The number of the first SSH key.
const FIRST_KEY: usize = 512_189;

// === impl FakeDigitalOcean ===

impl FakeDigitalOcean {
    pub fn new(key: &str, shapes: Shapes) -> Self {
        Self { key: key.to_owned(), shapes, ssh_keys: Vec::new() }
    }

    /// Every size once, with the regions that have some left.
    fn sizes(&self, economy: &Economy) -> Vec<Value> {
        let mut names: Vec<&str> = economy.goods.iter().map(|good| good.machine.as_str()).collect();
        names.dedup();
        let mut sizes = match self.shapes.body("other_sizes", &BTreeMap::new()) {
            Value::Array(others) => others,
            _ => Vec::new(),
        };
        sizes.extend(names.iter().filter_map(|name| self.size(economy, name)));
        sizes
    }

    fn size(&self, economy: &Economy, name: &str) -> Option<Value> {
        let sold: Vec<&Good> = economy.goods.iter().filter(|good| good.machine == name).collect();
        let good = sold.first()?;
        let regions: Vec<&str> = sold.iter().filter(|good| good.stock > 0).map(|good| good.region.as_str()).collect();
        let fill = BTreeMap::from([
            ("machine", json!(name)),
            ("ram", json!(good.memory_gib * 1024)),
            ("vcpus", json!(good.vcpus)),
            ("disk", json!(good.disk_gib)),
            ("hourly", number(good.price)),
            ("monthly", number(Money::from_micros(good.price.micros() * 744))),
            ("available", json!(!regions.is_empty())),
            ("regions", json!(regions)),
            ("gpus", json!(good.gpus)),
            ("gpu", json!(good.gpu)),
            ("vram", json!(good.vram_gib * good.gpus)),
        ]);
        Some(self.shapes.body("size", &fill))
    }

    fn droplet(&self, rented: &Rented, economy: &Economy) -> Value {
        let phase = economy.phase(rented);
        let v4 = if phase == Phase::Booting {
            json!([])
        } else {
            let private = format!("10.10.0.{}", rented.number);
            json!([{ "ip_address": private, "netmask": "255.255.0.0", "type": "private" },
                { "ip_address": rented.address(), "netmask": "255.255.255.0", "type": "public" }])
        };
        let fill = BTreeMap::from([
            ("id", json!(number_of(&rented.id))),
            ("name", json!(rented.name)),
            ("status", json!(self.shapes.word(phase))),
            ("created", json!(second(economy.moment(rented.at)))),
            ("machine", json!(rented.good.machine)),
            ("hourly", number(rented.price)),
            ("v4", v4),
            ("region", json!(rented.good.region)),
            ("tags", rented.said("/tags")),
        ]);
        self.shapes.body("droplet", &fill)
    }

    fn launch(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let name = question.text("/name");
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.');
        let image = question.body.pointer("/image").cloned().unwrap_or_default();
        let has_image = image.is_u64() || image.as_str().is_some_and(|image| !image.is_empty());
        let keys = question.list("/ssh_keys");
        let known = |key: &Value| (0..self.ssh_keys.len()).any(|number| *key == json!(FIRST_KEY + number));
        let tagged = question.list("/tags").iter().all(|tag| tag.as_str().is_some_and(is_tag));
        if name.is_empty() || !is_name || !has_image || keys.is_empty() || !keys.iter().all(known) || !tagged {
            return self.shapes.refusal(Refused::Invalid);
        }
        match economy.rent(question.text("/size"), question.text("/region"), false, name, question.body.clone()) {
            Ok(rented) => {
                let droplet = self.droplet(&rented, economy);
                Answer::json(202, &json!({ "droplet": droplet, "links": { "actions": [] } }))
            }
            Err(refused) => self.shapes.refusal(refused),
        }
    }

    /// Everything here has a GPU, so a list without a wish is empty.
    fn list(&self, question: &Question, economy: &Economy) -> Answer {
        let tag = question.asked("tag_name");
        let kind = question.asked("type");
        if tag.is_some() && kind.is_some() {
            return self.shapes.refusal(Refused::Invalid);
        }
        let right = |rented: &&Rented| match tag {
            Some(tag) => rented.said("/tags").as_array().is_some_and(|tags| tags.contains(&json!(tag))),
            None => kind == Some("gpus"),
        };
        let all = economy.listed().into_iter().filter(right).map(|rented| self.droplet(rented, economy)).collect();
        page("droplets", all, question, economy)
    }

    fn of_one(&self, question: &Question, economy: &mut Economy, number: &str) -> Answer {
        let ids: Vec<String> = economy.rented.iter().map(|rented| rented.id.clone()).collect();
        let id = ids.iter().find(|id| number_of(id).to_string() == number);
        let Some(rented) = id.and_then(|id| economy.find(id)) else { return self.shapes.refusal(Refused::NotFound) };
        if question.method == http::Method::DELETE {
            let id = rented.id.clone();
            economy.end(&id);
            return Answer::empty(204);
        }
        Answer::json(200, &json!({ "droplet": self.droplet(rented, economy) }))
    }

    /// The same key cannot be there twice.
    fn add_key(&mut self, question: &Question) -> Answer {
        let (name, public) = (question.text("/name").to_owned(), question.text("/public_key").to_owned());
        let mut words = public.split(' ');
        let blob = words.nth(1).and_then(|blob| STANDARD.decode(blob).ok()).unwrap_or_default();
        let is_key = public.starts_with("ssh-ed25519 ") && blob.len() == 51 && blob.get(4..15) == Some(b"ssh-ed25519");
        if name.is_empty() || !is_key || self.ssh_keys.iter().any(|(_, one)| *one == public) {
            return self.shapes.refusal(Refused::Invalid);
        }
        self.ssh_keys.push((name, public));
        Answer::json(201, &json!({ "ssh_key": self.keys().pop() }))
    }

    fn keys(&self) -> Vec<Value> {
        let key = |(number, (name, public)): (usize, &(String, String))| {
            let id = FIRST_KEY + number;
            json!({ "id": id, "fingerprint": "3b:16:e4:bf", "name": name, "public_key": public })
        };
        self.ssh_keys.iter().enumerate().map(key).collect()
    }
}

impl Fake for FakeDigitalOcean {
    fn operation(&self, question: &Question) -> Operation {
        match question.route("/v2") {
            (_, path) if path == ["sizes"] => Operation::Offers,
            ("POST", path) if path == ["droplets"] => Operation::Launch,
            (_, path) if path == ["droplets"] => Operation::List,
            ("DELETE", path) if path.first() == Some(&"droplets") => Operation::Terminate,
            (_, path) if path.first() == Some(&"droplets") => Operation::Describe,
            _ => Operation::Verify,
        }
    }

    fn answer(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let (method, path) = question.route("/v2");
        let answer = match (method, path.as_slice()) {
            ("GET", ["sizes"]) => page("sizes", self.sizes(economy), question, economy),
            ("GET", ["droplets"]) => self.list(question, economy),
            ("POST", ["droplets"]) => self.launch(question, economy),
            ("GET" | "DELETE", ["droplets", id]) => self.of_one(question, economy, id),
            ("GET", ["account", "keys"]) => page("ssh_keys", self.keys(), question, economy),
            ("POST", ["account", "keys"]) => self.add_key(question),
            ("GET", ["account"]) => {
                let limit = json!(economy.quota);
                Answer::json(200, &self.shapes.body("account", &BTreeMap::from([("limit", limit)])))
            }
            ("GET", ["customers", "my", "balance"]) => {
                // Money in hand is a debt below zero.
                let owed = json!(number(Money::from_micros(-economy.balance.micros())).to_string());
                Answer::json(200, &self.shapes.body("balance", &BTreeMap::from([("owed", owed)])))
            }
            _ => self.shapes.refusal(Refused::NotFound),
        };
        answer.with_header("ratelimit-limit", 5000).with_header("ratelimit-remaining", 4816)
    }

    fn knows(&self, question: &Question) -> bool {
        question.has_bearer(&self.key)
    }

    fn shapes(&self) -> &Shapes {
        &self.shapes
    }
}

fn is_tag(tag: &str) -> bool {
    let right = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-' | b'_');
    !tag.is_empty() && tag.len() <= 255 && tag.bytes().all(right)
}

/// Its machines have numbers for ids.
fn number_of(id: &str) -> u32 {
    id.bytes().fold(2_166_136_261, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
}

/// Moments are told to the second.
fn second(moment: jiff::Timestamp) -> String {
    jiff::Timestamp::from_second(moment.as_second()).unwrap_or_default().to_string()
}

/// Dollars as a number.
fn number(money: Money) -> Value {
    let micros = money.micros().unsigned_abs();
    let sign = if money.is_negative() { "-" } else { "" };
    let text = format!("{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    serde_json::from_str(&text).unwrap_or_default()
}

/// The next page is named by its whole address.
fn page(name: &str, all: Vec<Value>, question: &Question, economy: &Economy) -> Answer {
    let asked = |key: &str| question.asked(key).and_then(|text| text.parse::<usize>().ok());
    let most = asked("per_page").unwrap_or(20).clamp(1, 200).min(economy.page);
    let this = asked("page").unwrap_or(1).max(1);
    let total = all.len();
    let next = if this * most < total { Some(this + 1) } else { economy.pages_go_round.then_some(1) };
    let shown: Vec<Value> = all.into_iter().skip((this - 1) * most).take(most).collect();
    let address = |next: usize| format!("https://api.digitalocean.com{}?per_page={most}&page={next}", question.path);
    let links = next.map_or(json!({}), |next| json!({ "pages": { "next": address(next) } }));
    Answer::json(200, &json!({ name: shown, "links": links, "meta": { "total": total } }))
}
