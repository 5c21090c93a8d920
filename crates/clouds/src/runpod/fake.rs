// SPDX-License-Identifier: Apache-2.0
//! RunPod's two APIs as the specification describes them.

mod graph;

use std::collections::{BTreeMap, BTreeSet};

use bivouac_market::Row;
use serde_json::{Value, json};

use crate::fake::{Answer, Economy, Fake, Good, Phase, Question, Refused, Rented, Shapes};
use crate::fault::Operation;

pub const SHAPES: &str = include_str!("shapes.yaml");

/// What the body of a new pod may have.
const KEYS: [&str; 16] = [
    "name",
    "image",
    "gpu",
    "cpu",
    "cloud",
    "dataCenterIds",
    "disk",
    "mounts",
    "env",
    "ports",
    "args",
    "registry",
    "startSsh",
    "startJupyter",
    "globalNetworking",
    "templateId",
];

pub struct FakeRunpod {
    key: String,
    shapes: Shapes,
    graphql_is_retired: bool,
}

// === impl FakeRunpod ===

impl FakeRunpod {
    pub fn new(key: &str, shapes: Shapes) -> Self {
        Self { key: key.to_owned(), shapes, graphql_is_retired: false }
    }

    /// A RunPod of the day after.
    pub fn without_graphql(self) -> Self {
        Self { graphql_is_retired: true, ..self }
    }

    fn catalogue(&self, question: &Question, economy: &Economy) -> Answer {
        if question.asked("include") != Some("AVAILABILITY") || question.asked("product") != Some("POD") {
            return self.shapes.refusal(Refused::Invalid);
        }
        let cloud = question.asked("cloud").unwrap_or("SECURE");
        let count = question.asked("count").map_or(Some(1), |count| count.parse::<u32>().ok()).unwrap_or_default();
        let ids: BTreeSet<&str> = economy.goods.iter().map(|good| good.gpu.as_str()).collect();
        let gpus: Vec<Value> = ids.into_iter().map(|id| self.gpu(id, cloud, count, economy)).collect();
        Answer::json(200, &json!({ "gpus": gpus }))
    }

    fn gpu(&self, id: &str, cloud: &str, count: u32, economy: &Economy) -> Value {
        let of = |half: &'static str| {
            economy.goods.iter().filter(move |good| good.gpu == id && good.machine.starts_with(half))
        };
        let price = |half| of(half).next().map(|good| dollars(good.price.micros() / i64::from(good.gpus.max(1))));
        let most = |half| of(half).map(|good| good.gpus).max();
        let half = if cloud == "COMMUNITY" { "COMMUNITY/" } else { "SECURE/" };
        let here: Vec<&Good> = of(half).filter(|good| good.gpus == count).collect();
        let centers: Vec<Value> = here
            .iter()
            .map(|good| json!({ "id": good.region, "name": good.region, "availability": level(good.stock) }))
            .collect();
        let fill = BTreeMap::from([
            ("id", json!(id)),
            ("pool", json!(id.replace(' ', "_").to_ascii_uppercase())),
            ("memory", json!(economy.goods.iter().find(|good| good.gpu == id).map(|good| good.vram_gib))),
            ("secure", json!(of("SECURE/").next().is_some())),
            ("community", json!(of("COMMUNITY/").next().is_some())),
            ("secure_price", json!(price("SECURE/"))),
            ("community_price", json!(price("COMMUNITY/"))),
            ("secure_most", json!(most("SECURE/"))),
            ("community_most", json!(most("COMMUNITY/"))),
            ("availability", json!(level(here.iter().map(|good| good.stock).sum()))),
            ("centers", json!(centers)),
        ]);
        self.shapes.body("gpu", &fill)
    }

    fn pod(&self, rented: &Rented, economy: &Economy) -> Value {
        let phase = economy.phase(rented);
        let runtime = self.shapes.body("runtime", &BTreeMap::from([("ip", json!(rented.address()))]));
        let is_up = phase == Phase::Running;
        let cost = if self.shapes.word(phase) == "EXITED" { 0 } else { rented.price.micros() };
        let fill = BTreeMap::from([
            ("id", json!(rented.id)),
            ("name", json!(rented.name)),
            ("status", json!(self.shapes.word(phase))),
            ("gpu", json!(rented.good.gpu)),
            ("count", json!(rented.good.gpus)),
            ("cloud", json!(rented.good.machine.split('/').next())),
            ("region", json!(rented.good.region)),
            ("cost", dollars(cost)),
            ("runtime", if is_up { runtime } else { Value::Null }),
            ("created", json!(format!("{:.0}", economy.moment(rented.at)))),
            ("env", rented.said("/env")),
            ("ports", rented.said("/ports")),
            ("image", rented.said("/image")),
            ("disk", rented.said("/disk")),
        ]);
        self.shapes.body("pod", &fill)
    }

    /// Every page but the last names where the next begins.
    fn pods(&self, question: &Question, economy: &Economy) -> Answer {
        let listed = economy.listed();
        let first: usize = question.asked("cursor").and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
        let end = first.saturating_add(economy.page);
        let page: Vec<Value> = listed.iter().skip(first).take(economy.page).map(|one| self.pod(one, economy)).collect();
        let next = if end < listed.len() { Some(end) } else { economy.pages_go_round.then_some(0) };
        let mut body = json!({ "pods": page });
        if let (Some(next), Some(body)) = (next, body.as_object_mut()) {
            body.insert("nextCursor".to_owned(), json!(next.to_string()));
        }
        Answer::json(200, &body)
    }

    fn create(&self, question: &Question, economy: &mut Economy) -> Answer {
        let Some(body) = question.body.as_object() else { return self.shapes.refusal(Refused::Invalid) };
        let unknown = body.keys().any(|key| !KEYS.contains(&key.as_str()));
        let texts = |pointer: &str| question.list(pointer).iter().all(Value::is_string);
        let args = body.get("args").is_none_or(Value::is_string);
        let ports = question.list("/ports").iter().all(|port| port.as_str().is_some_and(|port| port.contains('/')));
        if unknown || question.text("/name").is_empty() || question.text("/image").is_empty() || !args || !ports {
            return self.shapes.refusal(Refused::Invalid);
        }
        let count = question.body.pointer("/gpu/count").map_or(Some(1), Value::as_u64).unwrap_or_default();
        let cloud = body.get("cloud").map_or(Some("SECURE"), Value::as_str).unwrap_or_default();
        let machine = format!("{cloud}/{count}x {}", question.text("/gpu/id"));
        let centers: Vec<&str> = question.list("/dataCenterIds").iter().filter_map(Value::as_str).collect();
        if !texts("/dataCenterIds") || !economy.goods.iter().any(|good| good.machine == machine) {
            return self.shapes.refusal(Refused::Invalid);
        }
        match rent(economy, &machine, &centers, false, question.text("/name"), question.body.clone()) {
            Ok(rented) => Answer::json(201, &self.pod(&rented, economy)),
            Err(refused) => self.shapes.refusal(refused),
        }
    }
}

impl Fake for FakeRunpod {
    fn operation(&self, question: &Question) -> Operation {
        match question.route("/v2") {
            (_, path) if path == ["graphql"] => graph::operation(question),
            (_, path) if path.first() == Some(&"catalog") => Operation::Offers,
            ("POST", path) if path == ["pods"] => Operation::Launch,
            ("DELETE", _) => Operation::Terminate,
            (_, path) if path == ["pods"] => Operation::List,
            (_, path) if path.first() == Some(&"pods") => Operation::Describe,
            _ => Operation::Verify,
        }
    }

    fn answer(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let (method, path) = question.route("/v2");
        let answer = match (method, path.as_slice()) {
            ("POST", ["graphql"]) => return self.graphql(question, economy),
            ("GET", ["catalog", "gpus"]) => self.catalogue(question, economy),
            ("GET", ["pods"]) => self.pods(question, economy),
            ("POST", ["pods"]) => self.create(question, economy),
            ("GET", ["pods", id]) => match economy.find(id) {
                Some(rented) => Answer::json(200, &self.pod(rented, economy)),
                None => self.shapes.refusal(Refused::NotFound),
            },
            ("DELETE", ["pods", id]) if economy.end(id) => Answer::empty(204),
            _ => self.shapes.refusal(Refused::NotFound),
        };
        answer.with_header("ratelimit", r#""minute";r=42;t=30, "hour";r=2900;t=1800, "day";r=49000;t=40000"#)
    }

    fn knows(&self, question: &Question) -> bool {
        question.has_bearer(&self.key)
    }

    fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    fn good(&self, row: &Row<'_>) -> Option<Good> {
        let good = Good::of(row)?;
        Some(Good { machine: format!("SECURE/{}x {}", good.gpus, good.gpu), ..good })
    }
}

/// From the first of these data centers that has one, or from any if none is named.
fn rent(
    economy: &mut Economy,
    machine: &str,
    centers: &[&str],
    spot: bool,
    name: &str,
    body: Value,
) -> Result<Rented, Refused> {
    let fits = |good: &&Good| {
        good.machine == machine && good.stock > 0 && (centers.is_empty() || centers.contains(&good.region.as_str()))
    };
    let region = economy.goods.iter().find(fits).map(|good| good.region.clone()).ok_or(Refused::NoCapacity)?;
    economy.rent(machine, &region, spot, name, body)
}

fn level(stock: u32) -> &'static str {
    match stock {
        0 => "NONE",
        1 => "LOW",
        2..=4 => "MEDIUM",
        _ => "HIGH",
    }
}

/// A JSON number of dollars.
fn dollars(micros: i64) -> Value {
    serde_json::from_str(&bivouac_core::Money::from_micros(micros).to_string()).unwrap_or_default()
}
