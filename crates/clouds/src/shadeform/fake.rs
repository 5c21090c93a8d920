// SPDX-License-Identifier: Apache-2.0
//! Shadeform's API as the specification describes it.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::fake::{Answer, Economy, Fake, Good, Phase, Question, Refused, Rented, Shapes};
use crate::fault::Operation;

pub const SHAPES: &str = include_str!("shapes.yaml");

pub struct FakeShadeform {
    key: String,
    shapes: Shapes,
}

// === impl FakeShadeform ===

impl FakeShadeform {
    pub fn new(key: &str, shapes: Shapes) -> Self {
        Self { key: key.to_owned(), shapes }
    }

    fn types(&self, question: &Question, economy: &Economy) -> Value {
        let mut names: Vec<&str> = economy.goods.iter().map(|good| good.machine.as_str()).collect();
        names.dedup();
        let wanted = |name: &&&str| {
            let (cloud, kind) = apart(name);
            let right = |key: &str, has: &str| question.asked(key).is_none_or(|wanted| wanted == has);
            right("cloud", cloud) && right("shade_instance_type", kind)
        };
        let mut types: Vec<Value> = names.iter().filter(wanted).filter_map(|name| self.kind(economy, name)).collect();
        if question.query.is_empty() {
            types.push(self.shapes.body("container", &BTreeMap::new()));
        }
        json!({ "instance_types": types })
    }

    fn kind(&self, economy: &Economy, name: &str) -> Option<Value> {
        let sold: Vec<&Good> = economy.goods.iter().filter(|good| good.machine == name).collect();
        let good = sold.first()?;
        let place =
            |good: &&Good| json!({ "region": good.region, "available": good.stock > 0, "display_name": "Here" });
        let (cloud, kind) = apart(name);
        let fill = BTreeMap::from([
            ("cloud", json!(cloud)),
            ("type", json!(kind)),
            ("memory_gib", json!(good.memory_gib)),
            ("disk_gib", json!(good.disk_gib)),
            ("vcpus", json!(good.vcpus)),
            ("gpus", json!(good.gpus)),
            ("gpu", json!(good.gpu)),
            ("vram_gib", json!(good.vram_gib)),
            ("systems", self.systems()),
            ("cents", json!(good.price.micros() / 10_000)),
            ("regions", sold.iter().map(place).collect()),
        ]);
        Some(self.shapes.body("type", &fill))
    }

    fn systems(&self) -> Value {
        self.shapes.body("systems", &BTreeMap::new())
    }

    fn instance(&self, rented: &Rented, economy: &Economy) -> Value {
        let phase = economy.phase(rented);
        let (cloud, kind) = apart(&rented.good.machine);
        let created = jiff::Timestamp::from_second(economy.moment(rented.at).as_second()).unwrap_or_default();
        let fill = BTreeMap::from([
            ("id", json!(rented.id)),
            ("cloud", json!(cloud)),
            ("region", json!(rented.good.region)),
            ("type", json!(kind)),
            ("name", json!(rented.name)),
            ("ip", json!(if phase == Phase::Booting { String::new() } else { rented.address() })),
            ("status", json!(self.shapes.word(phase))),
            ("cents", json!(rented.price.micros() / 10_000)),
            ("tags", rented.said("/tags")),
            ("auto_delete", rented.said("/auto_delete")),
            ("created", json!(created.to_string())),
        ]);
        self.shapes.body("instance", &fill)
    }

    fn launch(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let system = question.body.pointer("/os").cloned().unwrap_or_default();
        let has_system = system.is_null() || self.systems().as_array().is_some_and(|all| all.contains(&system));
        let script = question.text("/launch_configuration/script_configuration/base64_script");
        let has_script = question.text("/launch_configuration/type") == "script" && STANDARD.decode(script).is_ok();
        let date = question.text("/auto_delete/date_threshold");
        let has_end = date.is_empty() || date.parse::<jiff::Timestamp>().is_ok();
        let own = question.body.pointer("/shade_cloud") == Some(&json!(true));
        let tagged = question.list("/tags").iter().all(Value::is_string);
        if !has_system || !has_script || !has_end || !own || !tagged || question.text("/name").is_empty() {
            return self.shapes.refusal(Refused::Invalid);
        }
        let machine = format!("{}/{}", question.text("/cloud"), question.text("/shade_instance_type"));
        let name = question.text("/name");
        match economy.rent(&machine, question.text("/region"), false, name, question.body.clone()) {
            Ok(rented) => Answer::json(200, &json!({ "id": rented.id, "cloud_assigned_id": "13b057d7" })),
            Err(refused) => self.shapes.refusal(refused),
        }
    }
}

impl Fake for FakeShadeform {
    fn operation(&self, question: &Question) -> Operation {
        match question.route("/v1") {
            (_, path) if path == ["instances", "types"] => Operation::Offers,
            (_, path) if path == ["instances", "create"] => Operation::Launch,
            (_, path) if path == ["instances"] => Operation::List,
            (_, path) if path.get(2) == Some(&"info") => Operation::Describe,
            (_, path) if path.get(2) == Some(&"delete") => Operation::Terminate,
            _ => Operation::Verify,
        }
    }

    fn answer(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let (method, path) = question.route("/v1");
        match (method, path.as_slice()) {
            ("GET", ["instances", "types"]) => Answer::json(200, &self.types(question, economy)),
            ("GET", ["instances"]) => {
                let all: Vec<Value> = economy.listed().iter().map(|one| self.instance(one, economy)).collect();
                Answer::json(200, &json!({ "instances": all }))
            }
            ("POST", ["instances", "create"]) => self.launch(question, economy),
            ("GET", ["instances", id, "info"]) => match economy.find(id) {
                Some(rented) => Answer::json(200, &self.instance(rented, economy)),
                None => self.shapes.refusal(Refused::NotFound),
            },
            ("POST", ["instances", id, "delete"]) => match economy.end(id) {
                true => Answer::empty(200),
                false => self.shapes.refusal(Refused::NotFound),
            },
            _ => self.shapes.refusal(Refused::NotFound),
        }
    }

    fn knows(&self, question: &Question) -> bool {
        question.headers.get("x-api-key").is_some_and(|key| key.as_bytes() == self.key.as_bytes())
    }

    fn shapes(&self) -> &Shapes {
        &self.shapes
    }
}

/// The cloud behind it, and the type.
fn apart(machine: &str) -> (&str, &str) {
    machine.split_once('/').unwrap_or(("", machine))
}
