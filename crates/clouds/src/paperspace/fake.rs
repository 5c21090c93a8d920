// SPDX-License-Identifier: Apache-2.0
//! Paperspace's API as the specification describes it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::fake::{Answer, Economy, Fake, Fate, Phase, Question, Refused, Rented, Shapes};
use crate::fault::Operation;

pub const SHAPES: &str = include_str!("shapes.yaml");

const DISKS: [u64; 10] = [50, 100, 250, 500, 1000, 2000, 4000, 8000, 12_000, 16_000];
/// Id, name, system, and the day it was made.
const TEMPLATES: [(&str, &str, &str, &str); 4] = [
    ("t0nspur5", "Ubuntu 22.04", "Ubuntu 22.04", "2025-06-01T00:00:00.000Z"),
    ("twnlo3zj", "ML-in-a-Box", "Ubuntu 20.04", "2024-02-01T00:00:00.000Z"),
    ("tvimtol9", "ML-in-a-Box", "Ubuntu 22.04", "2025-03-01T00:00:00.000Z"),
    ("twindows", "Windows 10", "Windows 10", "2026-01-01T00:00:00.000Z"),
];
const KEYS: [&str; 14] = [
    "name",
    "machineType",
    "templateId",
    "diskSize",
    "region",
    "networkId",
    "publicIpType",
    "startupScriptId",
    "startOnCreate",
    "enableNvlink",
    "autoShutdownEnabled",
    "autoShutdownTimeout",
    "autoShutdownForce",
    "accessorIds",
];

pub struct FakePaperspace {
    key: String,
    shapes: Shapes,
    scripts: Vec<Script>,
}

struct Script {
    id: String,
    name: String,
    machines: Vec<String>,
}

// === impl FakePaperspace ===

impl FakePaperspace {
    pub fn new(key: &str, shapes: Shapes) -> Self {
        Self { key: key.to_owned(), shapes, scripts: Vec::new() }
    }

    fn machine(&self, rented: &Rented, economy: &Economy) -> Value {
        let (good, phase) = (&rented.good, economy.phase(rented));
        let is_up = phase == Phase::Running;
        self.shapes.body(
            "machine",
            &BTreeMap::from([
                ("id", json!(rented.id)),
                ("name", json!(rented.name)),
                ("state", json!(self.shapes.word(phase))),
                ("machine", json!(good.machine)),
                ("vcpus", json!(good.vcpus)),
                ("ram", json!((u64::from(good.memory_gib) << 30).to_string())),
                ("gpu", json!(good.gpu)),
                ("vram", json!((u64::from(good.vram_gib) << 30).to_string())),
                ("gpus", json!(good.gpus)),
                ("disk", rented.said("/diskSize")),
                ("rate", serde_json::from_str(&rented.price.to_string()).unwrap_or_default()),
                ("region", json!(long(&good.region))),
                ("private_ip", json!(format!("10.64.0.{}", rented.number))),
                ("public_ip", json!(is_up.then(|| rented.address()))),
                ("script", rented.said("/startupScriptId")),
                ("created", json!(format!("{:.3}", economy.moment(rented.at)))),
            ]),
        )
    }

    /// The newest first.
    fn events(&self, rented: &Rented, economy: &Economy) -> Vec<Value> {
        let event = |name: &str, state: &str, error: Option<&str>| {
            let fill = BTreeMap::from([
                ("id", json!(format!("{}-{name}", rented.id))),
                ("name", json!(name)),
                ("state", json!(state)),
                ("machine", json!(rented.id)),
                ("error", json!(error)),
                ("created", json!(format!("{:.3}", economy.moment(rented.at)))),
            ]);
            self.shapes.body("event", &fill)
        };
        let create = match (rented.fate, economy.phase(rented)) {
            (Fate::Failed, _) => event("create", "error", Some("no host could be found")),
            (_, Phase::Booting) => event("create", "in progress", None),
            _ => event("create", "done", None),
        };
        match economy.phase(rented) {
            Phase::Ending => vec![event("delete", "in progress", None), create],
            _ => vec![create],
        }
    }

    fn templates(&self, economy: &Economy) -> Vec<Value> {
        let machines: BTreeSet<&str> = economy.goods.iter().map(|good| good.machine.as_str()).collect();
        let types: Vec<Value> =
            machines.iter().map(|name| json!({ "machineTypeLabel": name, "isAvailable": true })).collect();
        let one = |(id, name, label, created): &(&str, &str, &str, &str)| {
            let fill = BTreeMap::from([
                ("id", json!(id)),
                ("name", json!(name)),
                ("label", json!(label)),
                ("types", json!(types)),
                ("created", json!(created)),
            ]);
            self.shapes.body("template", &fill)
        };
        TEMPLATES.iter().map(one).collect()
    }

    fn script(&self, script: &Script) -> Value {
        let fill = BTreeMap::from([
            ("id", json!(script.id)),
            ("name", json!(script.name)),
            ("machines", json!(script.machines)),
            ("created", json!("2026-11-15T06:00:00.000Z")),
        ]);
        self.shapes.body("script", &fill)
    }

    fn create(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let keys: Vec<&String> = question.body.as_object().map(|body| body.keys().collect()).unwrap_or_default();
        let known = !keys.is_empty() && keys.iter().all(|key| KEYS.contains(&key.as_str()));
        let disk = question.body.pointer("/diskSize").and_then(Value::as_u64).unwrap_or_default();
        let template = TEMPLATES.iter().any(|(id, ..)| *id == question.text("/templateId"));
        let script = self.scripts.iter().position(|one| one.id == question.text("/startupScriptId"));
        let (true, true, true, Some(script)) = (known, DISKS.contains(&disk), template, script) else {
            return self.shapes.refusal(Refused::Invalid);
        };
        let (machine, region, name) = (question.text("/machineType"), question.text("/region"), question.text("/name"));
        match economy.rent(machine, region, false, name, question.body.clone()) {
            Ok(rented) => {
                if let Some(script) = self.scripts.get_mut(script) {
                    script.machines.push(rented.id.clone());
                }
                let event = json!({ "id": format!("{}-create", rented.id), "name": "create", "state": "new" });
                Answer::json(200, &json!({ "data": self.machine(&rented, economy), "event": event }))
            }
            Err(refused) => self.shapes.refusal(refused),
        }
    }

    fn make_script(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let (name, text) = (question.text("/name"), question.text("/script"));
        if name.is_empty() || !text.starts_with("#!") {
            return self.shapes.refusal(Refused::Invalid);
        }
        let script = Script { id: economy.id(), name: name.to_owned(), machines: Vec::new() };
        let answer = Answer::json(200, &self.script(&script));
        self.scripts.push(script);
        answer
    }

    fn session(&self, economy: &Economy) -> Answer {
        Answer::json(200, &self.shapes.body("session", &BTreeMap::from([("limit", json!(economy.quota))])))
    }
}

impl Fake for FakePaperspace {
    fn operation(&self, question: &Question) -> Operation {
        let (method, path) = question.route("/v1");
        match (method, path.as_slice()) {
            (_, ["machine-availability"]) => Operation::Offers,
            ("POST", ["machines"]) => Operation::Launch,
            (_, ["machines"]) => Operation::List,
            ("DELETE", ["machines", _]) => Operation::Terminate,
            (_, ["machines", _]) => Operation::Describe,
            _ => Operation::Verify,
        }
    }

    fn answer(&mut self, question: &Question, economy: &mut Economy) -> Answer {
        let (method, path) = question.route("/v1");
        let found = |economy: &Economy, id: &str| economy.find(id).cloned();
        match (method, path.as_slice()) {
            ("GET", ["auth", "session"]) => self.session(economy),
            ("GET", ["machine-availability"]) => {
                let asked = |key| question.asked(key).unwrap_or_default();
                let good = economy.good(asked("machineType"), asked("region"));
                Answer::json(200, &json!({ "available": good.is_some_and(|good| good.stock > 0) }))
            }
            ("GET", ["os-templates"]) => page(question, economy, self.templates(economy)),
            ("GET", ["startup-scripts"]) => {
                page(question, economy, self.scripts.iter().map(|script| self.script(script)).collect())
            }
            ("POST", ["startup-scripts"]) => self.make_script(question, economy),
            ("POST", ["startup-scripts", id, "assign"]) => {
                let machine = question.text("/machineId").to_owned();
                self.scripts.iter_mut().filter(|script| script.id == *id).for_each(|script| {
                    script.machines.push(machine.clone());
                });
                Answer::json(200, &json!({ "id": id }))
            }
            ("DELETE", ["startup-scripts", id]) => {
                let before = self.scripts.len();
                self.scripts.retain(|script| script.id != *id);
                let missing = before == self.scripts.len();
                if missing { self.shapes.refusal(Refused::NotFound) } else { Answer::json(200, &json!({ "id": id })) }
            }
            ("POST", ["machines"]) => self.create(question, economy),
            ("GET", ["machines"]) => {
                page(question, economy, economy.listed().iter().map(|one| self.machine(one, economy)).collect())
            }
            ("GET", ["machine-events"]) => {
                let rented = found(economy, question.asked("machineId").unwrap_or_default());
                page(question, economy, rented.map(|one| self.events(&one, economy)).unwrap_or_default())
            }
            ("GET", ["machines", id]) => match found(economy, id) {
                Some(rented) => Answer::json(200, &self.machine(&rented, economy)),
                None => self.shapes.refusal(Refused::NotFound),
            },
            ("DELETE", ["machines", id]) if economy.end(id) => {
                let event = json!({ "id": format!("{id}-delete"), "name": "delete", "state": "new" });
                Answer::json(200, &json!({ "data": { "id": id }, "event": event }))
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

/// Cursors are numbers here; nobody else may know that.
fn page(question: &Question, economy: &Economy, all: Vec<Value>) -> Answer {
    let first: usize = question.asked("after").and_then(|after| after.strip_prefix('c')?.parse().ok()).unwrap_or(0);
    let limit = question.asked("limit").and_then(|limit| limit.parse().ok()).unwrap_or(10).min(economy.page);
    let end = first.saturating_add(limit);
    let next = if end < all.len() { Some(end) } else { economy.pages_go_round.then_some(0) };
    let items: Vec<Value> = all.into_iter().skip(first).take(limit).collect();
    let next = next.map(|next| format!("c{next}"));
    Answer::json(200, &json!({ "hasMore": next.is_some(), "nextPage": next, "items": items }))
}

fn long(region: &str) -> &str {
    match region {
        "ny2" => "East Coast (NY2)",
        "ca1" => "West Coast (CA1)",
        "ams1" => "Europe (AMS1)",
        other => other,
    }
}
