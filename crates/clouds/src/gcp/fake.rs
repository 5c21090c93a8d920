// SPDX-License-Identifier: Apache-2.0
//! Compute Engine's API as the specification describes it, with its operations and its price list.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::fake::{Answer, Economy, Fake, Phase, Question, Refused, Rented, Shapes};
use crate::fault::Operation;

pub const SHAPES: &str = include_str!("shapes.yaml");

pub struct FakeGcp {
    token: String,
    shapes: Shapes,
    /// What became of a launch, by its request id.
    launches: BTreeMap<String, String>,
}

// === impl FakeGcp ===

impl FakeGcp {
    pub fn new(token: &str, shapes: Shapes) -> Self {
        Self { token: token.to_owned(), shapes, launches: BTreeMap::new() }
    }

    fn operation_named(&self, name: &str, status: &str) -> Answer {
        let fill = BTreeMap::from([("name", json!(name)), ("status", json!(status))]);
        Answer::json(200, &self.shapes.body("operation", &fill))
    }

    fn launch(&mut self, zone: &str, question: &Question, economy: &mut Economy) -> Answer {
        let request = question.asked("requestId").unwrap_or_default().to_owned();
        if let Some(name) = self.launches.get(&request) {
            return self.operation_named(name, "DONE");
        }
        let name = question.text("/name");
        if economy.rented.iter().any(|one| one.name == name && one.ended.is_none()) {
            return self.shapes.refusal(Refused::Conflict);
        }
        let labels = question.body.pointer("/labels").and_then(Value::as_object).cloned().unwrap_or_default();
        let right = |text: &str| {
            text.len() <= 63
                && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
        };
        let labelled = labels.iter().all(|(key, value)| right(key) && value.as_str().is_some_and(right));
        let ends = question.text("/scheduling/onHostMaintenance") == "TERMINATE";
        let machine = question.text("/machineType").rsplit('/').next().unwrap_or_default();
        let loose = question.list("/guestAccelerators").first().map(|one| {
            let kind = one.get("acceleratorType").and_then(Value::as_str).unwrap_or_default();
            let count = one.get("acceleratorCount").cloned().unwrap_or_default();
            format!("+{count}x{}", kind.rsplit('/').next().unwrap_or_default())
        });
        let machine = format!("{machine}{}", loose.unwrap_or_default());
        let is_spot = question.text("/scheduling/provisioningModel") == "SPOT";
        if !labelled || !ends || !right(name) {
            return self.shapes.refusal(Refused::Invalid);
        }
        let region = super::region_of(zone).to_owned();
        match economy.rent(&machine, &region, is_spot, name, question.body.clone()) {
            Ok(rented) => {
                let operation = format!("operation-{}", rented.id);
                self.launches.insert(request, operation.clone());
                // Google names machines itself: the zone and the name.
                let id = format!("{zone}/{name}");
                economy.rented.iter_mut().filter(|one| one.id == rented.id).for_each(|one| one.id = id.clone());
                self.operation_named(&operation, "RUNNING")
            }
            Err(refused) => self.shapes.refusal(refused),
        }
    }

    fn instance(&self, rented: &Rented, economy: &Economy) -> Value {
        let phase = economy.phase(rented);
        let address = (phase != Phase::Booting).then(|| rented.address());
        self.shapes.body(
            "instance",
            &BTreeMap::from([
                ("name", json!(rented.name)),
                (
                    "zone_url",
                    json!(format!("https://www.googleapis.com/compute/v1/projects/p/zones/{}", rented.good.zone)),
                ),
                ("machine_url", rented.said("/machineType")),
                ("status", json!(self.shapes.word(phase))),
                ("labels", rented.said("/labels").as_object().map_or(json!({}), |labels| json!(labels))),
                ("scheduling", rented.said("/scheduling").as_object().map_or(json!({}), |map| json!(map))),
                ("created", json!(economy.moment(rented.at).to_string())),
                ("private_ip", json!(format!("10.128.0.{}", rented.number))),
                ("ip", json!(address)),
            ]),
        )
    }

    /// One page of things by zone; the token is where the next one begins.
    fn page(&self, question: &Question, economy: &Economy, what: &str, all: Vec<(String, Value)>) -> Answer {
        let size = question.asked("maxResults").and_then(|text| text.parse().ok()).unwrap_or(500).min(economy.page);
        let from: usize = question.asked("pageToken").and_then(|text| text.parse().ok()).unwrap_or_default();
        let next = match from + size {
            next if next < all.len() => Some(next.to_string()),
            _ if economy.pages_go_round => Some("0".to_owned()),
            _ => None,
        };
        let mut items = Map::new();
        items.insert("zones/us-east1-d".to_owned(), json!({ "warning": { "code": "NO_RESULTS_ON_PAGE" } }));
        for (zone, thing) in all.into_iter().skip(from).take(size) {
            let zone = items.entry(format!("zones/{zone}")).or_insert_with(|| json!({ what: [] }));
            zone.get_mut(what).and_then(Value::as_array_mut).into_iter().for_each(|list| list.push(thing.clone()));
        }
        Answer::json(200, &json!({ "kind": "compute#aggregatedList", "items": items, "nextPageToken": next }))
    }

    fn types(&self, economy: &Economy, loose: bool) -> Vec<(String, Value)> {
        let sold = economy.goods.iter().filter(|good| good.stock > 0 && good.machine.contains('+') == loose);
        let shape = if loose { "accelerator-type" } else { "machine-type" };
        sold.map(|good| {
            let fill = BTreeMap::from([
                ("machine", json!(good.machine)),
                ("vcpus", json!(good.vcpus)),
                ("memory_mb", json!(good.memory_gib * 1024)),
                ("gpu", json!(good.gpu)),
                ("gpus", json!(good.gpus)),
            ]);
            (good.zone.clone(), self.shapes.body(shape, &fill))
        })
        .collect()
    }

    fn skus(&self, question: &Question, economy: &Economy) -> Answer {
        let from: usize = question.asked("pageToken").and_then(|text| text.parse().ok()).unwrap_or_default();
        let all = self.shapes.body("skus", &BTreeMap::new());
        let all = all.as_array().map_or(&[][..], Vec::as_slice);
        let page: Vec<Value> = all.iter().skip(from).take(economy.page).filter_map(sku).collect();
        let next = from + economy.page;
        let next = if next < all.len() { next.to_string() } else { String::new() };
        Answer::json(200, &json!({ "skus": page, "nextPageToken": next }))
    }

    fn listed(&self, question: &Question, economy: &Economy) -> Answer {
        let wanted = question.asked("filter").and_then(|filter| filter.strip_prefix("labels.tgp-cluster="));
        let right = |one: &&&Rented| wanted.is_none_or(|owner| one.said("/labels/tgp-cluster") == json!(owner));
        let all = economy.listed();
        let all = all.iter().filter(right).map(|one| (one.good.zone.clone(), self.instance(one, economy))).collect();
        self.page(question, economy, "instances", all)
    }
}

fn sku(row: &Value) -> Option<Value> {
    let [description, usage, region, units, nanos] = row.as_array()?.as_slice() else { return None };
    let price = json!({ "currencyCode": "USD", "units": units, "nanos": nanos });
    Some(json!({
        "description": description,
        "category": { "resourceFamily": "Compute", "resourceGroup": "GPU", "usageType": usage },
        "serviceRegions": [region],
        "pricingInfo": [{ "pricingExpression": { "tieredRates": [{ "startUsageAmount": 0, "unitPrice": price }] } }],
    }))
}

impl Fake for FakeGcp {
    fn operation(&self, question: &Question) -> Operation {
        let (method, path) = question.route("/compute/v1/projects");
        match (method, path.as_slice()) {
            (_, [_, "aggregated", "machineTypes" | "acceleratorTypes"] | ["v1", "services", ..]) => Operation::Offers,
            (_, [_, "aggregated", "instances"]) => Operation::List,
            ("POST", [_, "zones", _, "instances"]) => Operation::Launch,
            ("GET", [_, "zones", _, "instances", _]) => Operation::Describe,
            ("DELETE", [_, "zones", _, "instances", _]) => Operation::Terminate,
            _ => Operation::Verify,
        }
    }

    fn answer(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let (method, path) = question.route("/compute/v1/projects");
        match (method, path.as_slice()) {
            ("GET", ["v1", "services", ..]) => self.skus(question, economy),
            ("GET", [_]) => Answer::json(200, &self.shapes.body("project", &BTreeMap::new())),
            ("GET", [_, "aggregated", "machineTypes"]) => {
                self.page(question, economy, "machineTypes", self.types(economy, false))
            }
            ("GET", [_, "aggregated", "acceleratorTypes"]) => {
                self.page(question, economy, "acceleratorTypes", self.types(economy, true))
            }
            ("GET", [_, "aggregated", "instances"]) => self.listed(question, economy),
            ("POST", [_, "zones", zone, "instances"]) => self.launch(zone, question, economy),
            ("GET", [_, "zones", _, "operations", name]) => self.operation_named(name, "DONE"),
            ("GET", [_, "zones", zone, "instances", name]) => match economy.find(&format!("{zone}/{name}")) {
                Some(rented) => Answer::json(200, &self.instance(rented, economy)),
                None => self.shapes.refusal(Refused::NotFound),
            },
            ("DELETE", [_, "zones", zone, "instances", name]) => {
                if economy.end(&format!("{zone}/{name}")) {
                    self.operation_named("operation-end", "RUNNING")
                } else {
                    self.shapes.refusal(Refused::NotFound)
                }
            }
            _ => self.shapes.refusal(Refused::NotFound),
        }
    }

    fn knows(&self, question: &Question) -> bool {
        question.has_bearer(&self.token)
    }

    fn shapes(&self) -> &Shapes {
        &self.shapes
    }
}
