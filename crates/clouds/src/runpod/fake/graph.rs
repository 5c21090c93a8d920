// SPDX-License-Identifier: Apache-2.0
//! The older API: one address, a few queries, and errors that look like success.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{FakeRunpod, dollars, rent};
use crate::fake::{Answer, Economy, Question, Refused};
use crate::fault::Operation;

/// What the input of the mutations may have.
const KEYS: [&str; 16] = [
    "bidPerGpu",
    "cloudType",
    "gpuTypeId",
    "gpuCount",
    "name",
    "imageName",
    "dockerArgs",
    "ports",
    "env",
    "volumeInGb",
    "containerDiskInGb",
    "dataCenterId",
    "terminateAfter",
    "stopAfter",
    "minVcpuCount",
    "minMemoryInGb",
];

pub fn operation(question: &Question) -> Operation {
    match question.text("/query") {
        query if query.contains("mutation") => Operation::Launch,
        query if query.contains("gpuTypes") => Operation::Offers,
        _ => Operation::Verify,
    }
}

impl FakeRunpod {
    pub(super) fn graphql(&self, question: &Question, economy: &mut Economy) -> Answer {
        if self.graphql_is_retired {
            return self.shapes.refusal(Refused::Retired);
        }
        let query = question.text("/query");
        if query.contains("gpuTypes") {
            return Answer::json(200, &json!({ "data": { "gpuTypes": self.types(economy) } }));
        }
        if query.contains("myself") {
            let fill = BTreeMap::from([("balance", dollars(economy.balance.micros()))]);
            return Answer::json(200, &self.shapes.body("myself", &fill));
        }
        match query {
            _ if query.contains("podRentInterruptable(") => self.deploy("podRentInterruptable", question, economy),
            _ if query.contains("podFindAndDeployOnDemand(") => {
                self.deploy("podFindAndDeployOnDemand", question, economy)
            }
            _ => Answer::json(200, &self.shapes.body("schema", &BTreeMap::new())),
        }
    }

    fn types(&self, economy: &Economy) -> Vec<Value> {
        let ids: BTreeSet<&str> = economy.goods.iter().map(|good| good.gpu.as_str()).collect();
        let one = |id: &str| {
            let first = |half: &str| {
                let mut of = economy.goods.iter().filter(|good| good.gpu == id && good.machine.starts_with(half));
                of.next()
            };
            let spot = |half: &str| {
                let good = first(half)?;
                Some(dollars(good.spot?.micros() / i64::from(good.gpus.max(1))))
            };
            let least = |half: &str| {
                let good = first(half)?;
                let (vcpus, memory) = (good.vcpus / good.gpus.max(1), good.memory_gib / good.gpus.max(1));
                let fill = BTreeMap::from([("vcpus", json!(vcpus)), ("memory", json!(memory))]);
                Some(self.shapes.body("least", &fill))
            };
            let fill = BTreeMap::from([
                ("id", json!(id)),
                ("secure_spot", json!(spot("SECURE/"))),
                ("community_spot", json!(spot("COMMUNITY/"))),
                ("secure_least", json!(least("SECURE/"))),
                ("community_least", json!(least("COMMUNITY/"))),
            ]);
            self.shapes.body("type", &fill)
        };
        ids.into_iter().map(one).collect()
    }

    fn deploy(&self, mutation: &str, question: &Question, economy: &mut Economy) -> Answer {
        let input = question.body.pointer("/variables/i").and_then(Value::as_object).cloned().unwrap_or_default();
        let spot = mutation == "podRentInterruptable";
        let text = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default();
        let machine = format!(
            "{}/{}x {}",
            text("cloudType"),
            input.get("gpuCount").and_then(Value::as_u64).unwrap_or_default(),
            text("gpuTypeId")
        );
        let unknown = input.keys().any(|key| !KEYS.contains(&key.as_str()));
        let is_sold = economy.goods.iter().any(|good| good.machine == machine);
        if unknown || !is_sold || text("name").is_empty() || input.contains_key("bidPerGpu") != spot {
            return Answer::json(200, &self.shapes.body("schema", &BTreeMap::new()));
        }
        let centers: Vec<&str> = Some(text("dataCenterId")).filter(|center| !center.is_empty()).into_iter().collect();
        let rented = match spot && self.is_low(&input, &machine, economy) {
            true => Err(Refused::NoCapacity),
            false => rent(economy, &machine, &centers, spot, text("name"), as_rest(&input)),
        };
        let refusal = match rented {
            Ok(rented) => {
                let fill = BTreeMap::from([("id", json!(rented.id)), ("cost", dollars(rented.price.micros()))]);
                return Answer::json(200, &json!({ "data": { mutation: self.shapes.body("deployed", &fill) } }));
            }
            Err(Refused::NoCapacity) => "no-capacity",
            Err(Refused::Quota) => "quota",
            Err(Refused::Payment) => "payment",
            Err(_) => "schema",
        };
        Answer::json(200, &self.shapes.body(refusal, &BTreeMap::new()))
    }

    /// Whether the bid is below what the pod costs.
    fn is_low(&self, input: &Map<String, Value>, machine: &str, economy: &Economy) -> bool {
        let good = economy.goods.iter().find(|good| good.machine == machine);
        let asked = good.and_then(|good| Some(dollars(good.spot?.micros() / i64::from(good.gpus.max(1)))));
        let number = |value: Option<&Value>| value.and_then(Value::as_f64).unwrap_or_default();
        number(input.get("bidPerGpu")) < number(asked.as_ref())
    }
}

/// The same pod as the newer API would have it, for that one lists it.
fn as_rest(input: &Map<String, Value>) -> Value {
    let pairs = input.get("env").and_then(Value::as_array).into_iter().flatten();
    let env: Map<String, Value> =
        pairs.filter_map(|pair| Some((pair.get("key")?.as_str()?.to_owned(), pair.get("value")?.clone()))).collect();
    let ports = input.get("ports").and_then(Value::as_str).unwrap_or_default();
    let ports: Vec<&str> = ports.split(',').filter(|port| !port.is_empty()).collect();
    json!({ "env": env, "ports": ports, "image": input.get("imageName"), "disk": input.get("containerDiskInGb") })
}
