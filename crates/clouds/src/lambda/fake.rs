// SPDX-License-Identifier: Apache-2.0
//! Lambda's API as the specification describes it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::fake::{Answer, Economy, Fake, Phase, Question, Refused, Rented, Shapes};
use crate::fault::Operation;

pub const SHAPES: &str = include_str!("shapes.yaml");

pub struct FakeLambda {
    key: String,
    shapes: Shapes,
    ssh_keys: BTreeSet<String>,
}

// === impl FakeLambda ===

impl FakeLambda {
    pub fn new(key: &str, shapes: Shapes) -> Self {
        Self { key: key.to_owned(), shapes, ssh_keys: BTreeSet::new() }
    }

    fn types(&self, economy: &Economy) -> Value {
        let mut types: BTreeMap<String, Value> = BTreeMap::new();
        let mut names: Vec<&str> = economy.goods.iter().map(|good| good.machine.as_str()).collect();
        names.dedup();
        for name in names {
            let sold: Vec<_> = economy.goods.iter().filter(|good| good.machine == name).collect();
            let Some(good) = sold.first() else { continue };
            let in_stock = sold.iter().filter(|good| good.stock > 0);
            let region = |region: &str| self.shapes.body("region", &BTreeMap::from([("region", json!(region))]));
            let fill = BTreeMap::from([
                ("machine", json!(name)),
                ("gpu", json!(good.gpu)),
                ("gpu_short", json!(good.gpu.split_once(' ').map_or("", |(_, rest)| rest))),
                ("cents", json!(good.price.micros() / 10_000)),
                ("vcpus", json!(good.vcpus)),
                ("memory_gib", json!(good.memory_gib)),
                ("disk_gib", json!(good.disk_gib)),
                ("gpus", json!(good.gpus)),
                ("regions", in_stock.map(|good| region(&good.region)).collect()),
            ]);
            types.insert(name.to_owned(), self.shapes.body("type", &fill));
        }
        json!({ "data": types })
    }

    fn instance(&self, rented: &Rented, economy: &Economy) -> Value {
        let phase = economy.phase(rented);
        let address = (phase != Phase::Booting).then(|| rented.address());
        self.shapes.body(
            "instance",
            &BTreeMap::from([
                ("id", json!(rented.id)),
                ("name", json!(rented.name)),
                ("ip", json!(address)),
                ("private_ip", json!(address.as_ref().map(|_| format!("10.19.0.{}", rented.number)))),
                ("status", json!(self.shapes.word(phase))),
                ("ssh_key_names", rented.said("/ssh_key_names")),
                ("region", json!(rented.good.region)),
                ("machine", json!(rented.good.machine)),
                ("cents", json!(rented.price.micros() / 10_000)),
                ("hostname", rented.said("/hostname")),
                ("tags", rented.said("/tags")),
            ]),
        )
    }

    fn launch(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let keys = question.list("/ssh_key_names");
        let known = keys.iter().all(|key| key.as_str().is_some_and(|key| self.ssh_keys.contains(key)));
        let name = question.text("/name");
        let hostname = question.text("/hostname");
        let is_label =
            hostname.len() <= 63 && hostname.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if keys.len() != 1 || !known || name.len() > 64 || !is_label {
            return self.shapes.refusal(Refused::Invalid);
        }
        let (machine, region) = (question.text("/instance_type_name"), question.text("/region_name"));
        match economy.rent(machine, region, false, name, question.body.clone()) {
            Ok(rented) => Answer::json(200, &self.shapes.body("launched", &BTreeMap::from([("id", json!(rented.id))]))),
            Err(refused) => self.shapes.refusal(refused),
        }
    }

    fn terminate(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let ids: Vec<&str> = question.list("/instance_ids").iter().filter_map(Value::as_str).collect();
        if ids.iter().any(|id| economy.find(id).is_none()) {
            return self.shapes.refusal(Refused::NotFound);
        }
        ids.iter().for_each(|id| {
            economy.end(id);
        });
        let ended: Vec<Value> = economy
            .rented
            .iter()
            .filter(|rented| ids.contains(&rented.id.as_str()))
            .map(|rented| self.instance(rented, economy))
            .collect();
        Answer::json(200, &json!({ "data": { "terminated_instances": ended } }))
    }
}

impl Fake for FakeLambda {
    fn operation(&self, question: &Question) -> Operation {
        match question.route("/api/v1") {
            (_, path) if path == ["instance-types"] => Operation::Offers,
            (_, path) if path == ["instance-operations", "launch"] => Operation::Launch,
            (_, path) if path == ["instance-operations", "terminate"] => Operation::Terminate,
            (_, path) if path.len() == 2 && path.first() == Some(&"instances") => Operation::Describe,
            (_, path) if path == ["instances"] => Operation::List,
            _ => Operation::Verify,
        }
    }

    fn answer(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let (method, path) = question.route("/api/v1");
        match (method, path.as_slice()) {
            ("GET", ["instance-types"]) => Answer::json(200, &self.types(economy)),
            ("GET", ["instances"]) => {
                let all: Vec<Value> = economy.listed().iter().map(|one| self.instance(one, economy)).collect();
                Answer::json(200, &json!({ "data": all }))
            }
            ("GET", ["instances", id]) => match economy.find(id) {
                Some(rented) => Answer::json(200, &json!({ "data": self.instance(rented, economy) })),
                None => self.shapes.refusal(Refused::NotFound),
            },
            ("GET", ["ssh-keys"]) => {
                let keys: Vec<Value> = self.ssh_keys.iter().map(|name| json!({ "id": name, "name": name })).collect();
                Answer::json(200, &json!({ "data": keys }))
            }
            ("POST", ["ssh-keys"]) => {
                let name = question.text("/name").to_owned();
                self.ssh_keys.insert(name.clone());
                Answer::json(200, &json!({ "data": { "id": name, "name": name, "private_key": "-----BEGIN" } }))
            }
            ("POST", ["instance-operations", "launch"]) => self.launch(question, economy),
            ("POST", ["instance-operations", "terminate"]) => self.terminate(question, economy),
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
