// SPDX-License-Identifier: Apache-2.0
//! Plays cases on a server and writes down what it answers.

mod request;
mod watch;

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use http::Method;
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};

use crate::case::{Case, Step};
use crate::cast::Cast;
use crate::normal::Normal;
use crate::path;
use request::{Answer, send};
use watch::Watch;

/// How long a step may take to become true.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(40);

/// What one step got, made comparable.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// What was asked, with the names of the case.
    pub request: String,
    pub status: u16,
    pub content_type: String,
    pub warnings: Vec<String>,
    pub body: Value,
    /// Why the real server did not do what the case says.
    #[serde(skip)]
    pub surprise: Option<String>,
}

/// All steps of one case on one server.
#[derive(Debug, Clone)]
pub struct Transcript {
    pub id: String,
    pub records: Vec<Record>,
    /// Why it ended early.
    pub broken: Option<String>,
}

impl Record {
    /// Before the real server sees that an object is gone, it may try a patch on the copy that its cache still has. What
    /// it warned of then stays in the answer, so that answer depends on how quick the cache was.
    fn forget_tries(&mut self) {
        if self.status == 404 && request::is_patch(&self.request) {
            self.warnings.clear();
        }
    }
}

impl Transcript {
    /// Whether the server did something else than the case says.
    pub fn surprised(&self) -> bool {
        self.broken.is_some() || self.records.iter().any(|record| record.surprise.is_some())
    }
}

/// Plays all cases, some at once, and keeps their order.
pub async fn play_all(client: &Client, cases: &[&Case], at_once: usize) -> Vec<Transcript> {
    futures::stream::iter(cases).map(|case| play(client, case)).buffered(at_once).collect().await
}

pub async fn play(client: &Client, case: &Case) -> Transcript {
    play_within(client, case, PATIENCE).await
}

/// Plays a case with other patience.
pub async fn play_within(client: &Client, case: &Case, patience: Duration) -> Transcript {
    let mut player = Player { patience, ..Player::new(client, case) };
    let broken = player.run(case).await.err().map(|error| format!("{error:#}"));
    player.clean(case).await;
    let mut normal = Normal::new(&player.cast);
    let mut records = player.raw;
    for record in &mut records {
        normal.value(&mut record.body);
        record.request = normal.text(&record.request);
        record.warnings.iter_mut().for_each(|warning| *warning = normal.text(warning));
        record.forget_tries();
    }
    Transcript { id: case.id(), records, broken }
}

/// Creates the definition of a case that is there for others. Says its API group.
pub async fn set_stage(client: &Client, case: &Case) -> Result<String> {
    let player = Player::new(client, case);
    if let Some(version) = &case.crd {
        player.define(version).await?;
    }
    Ok(player.cast.group)
}

struct Player<'a> {
    client: &'a Client,
    cast: Cast,
    /// Whether the definition was there before.
    staged: bool,
    patience: Duration,
    raw: Vec<Record>,
    watches: HashMap<String, Watch>,
}

impl<'a> Player<'a> {
    fn new(client: &'a Client, case: &Case) -> Self {
        let (cast, staged) = (Cast::new(case), case.stage.is_some());
        Self { client, cast, staged, patience: PATIENCE, raw: Vec::new(), watches: HashMap::new() }
    }

    async fn run(&mut self, case: &Case) -> Result<()> {
        self.set_the_scene(case).await.context("setting the scene")?;
        for (index, step) in case.steps.iter().enumerate() {
            let played = tokio::time::timeout(self.patience * 2, self.step(step)).await;
            played.context("no answer").flatten().with_context(|| format!("step {}", index + 1))?;
        }
        Ok(())
    }

    async fn set_the_scene(&mut self, case: &Case) -> Result<()> {
        let mut namespaces = vec![self.cast.ns.clone()];
        if case.mentions("{ns2}") {
            namespaces.push(self.cast.ns2.clone());
        }
        for name in namespaces {
            self.create("/api/v1/namespaces", json!({ "metadata": { "name": name } })).await?;
            // Pods need it. It is the same whether a controller makes it or we do.
            if case.mentions("/pods") || case.controllers {
                let path = format!("/api/v1/namespaces/{name}/serviceaccounts");
                let _ = self.create(&path, json!({ "metadata": { "name": "default" } })).await;
            }
        }
        match &case.crd {
            Some(version) if case.stage.is_none() => self.define(version).await,
            _ => Ok(()),
        }
    }

    async fn create(&self, path: &str, object: Value) -> Result<Answer> {
        let answer =
            send(self.client, Method::POST, path, &[("Content-Type", "application/json")], object.to_string()).await?;
        anyhow::ensure!(answer.status < 300, "{path}: {}", answer.body);
        Ok(answer)
    }

    /// Creates the definition of `tents` from what the case says of its version, and waits until it is served.
    async fn define(&self, version: &Value) -> Result<()> {
        let mut version = self.cast.value(version);
        let scope = version.as_object_mut().and_then(|it| it.remove("scope")).unwrap_or(json!("Namespaced"));
        let mut own = json!({ "name": "v1", "served": true, "storage": true });
        if let (Some(own), Some(given)) = (own.as_object_mut(), version.as_object_mut()) {
            own.append(given);
            let schema = own.remove("schema").unwrap_or(json!({ "type": "object" }));
            own.insert("schema".to_owned(), json!({ "openAPIV3Schema": schema }));
        }
        let group = &self.cast.group;
        let names = json!({ "plural": "tents", "singular": "tent", "kind": "Tent", "listKind": "TentList" });
        let object = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("tents.{group}") },
            "spec": { "group": group, "scope": scope, "names": names, "versions": [own] },
        });
        self.create(&self.cast.text("{crds}"), object).await?;
        let path = format!("/apis/{group}/v1/tents");
        let end = tokio::time::Instant::now() + PATIENCE;
        while send(self.client, Method::GET, &path, &[], String::new()).await?.status != 200 {
            anyhow::ensure!(tokio::time::Instant::now() < end, "tents are not served");
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<()> {
        if let Some(name) = &step.events {
            return self.events(name, step).await;
        }
        for turn in 0..step.times.unwrap_or(1) {
            self.cast.set("i", &json!(turn.to_string()));
            match &step.watch {
                Some(name) => self.open(name, step).await?,
                None => self.ask(step).await?,
            }
        }
        Ok(())
    }

    async fn ask(&mut self, step: &Step) -> Result<()> {
        let end = tokio::time::Instant::now() + self.patience;
        loop {
            let answer = self.send(step).await?;
            let done = step.until.as_ref().is_none_or(|until| {
                let found = path::find(&answer.body, &self.cast.text(&until.path));
                let wanted = self.cast.value(&until.is);
                if wanted.is_null() { found.is_empty() } else { found.contains(&&wanted) }
            });
            if done || tokio::time::Instant::now() > end {
                let late = (!done).then(|| "it did not become true in time".to_owned());
                return self.write(step, answer, late);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn send(&self, step: &Step) -> Result<Answer> {
        request::read(request::open(self.client, request::Parts::new(step, &self.cast)?).await?).await
    }

    async fn open(&mut self, name: &str, step: &Step) -> Result<()> {
        let request = request::Parts::new(step, &self.cast)?;
        let (answer, watch) = Watch::open(self.client, request).await?;
        if let Some(watch) = watch {
            self.watches.insert(name.to_owned(), watch);
        }
        self.write(step, answer, None)
    }

    async fn events(&mut self, name: &str, step: &Step) -> Result<()> {
        let watch = self.watches.get_mut(name).with_context(|| format!("there is no watch {name:?}"))?;
        let (events, ended) = watch.read(step.count, self.patience).await;
        let short = step.count.filter(|count| events.len() < *count);
        let surprise = short.map(|count| format!("{} events instead of {count}", events.len()));
        let body = json!({ "events": events, "ended": ended });
        let answer = Answer { status: 200, content_type: String::new(), warnings: Vec::new(), body };
        self.write(step, answer, surprise)
    }

    fn write(&mut self, step: &Step, answer: Answer, late: Option<String>) -> Result<()> {
        for (name, place) in &step.save {
            let found = path::find(&answer.body, &self.cast.text(place));
            match found.first() {
                Some(value) => self.cast.set(name, &(*value).clone()),
                None => anyhow::ensure!(self.staged, "no {place} in {}", answer.body),
            }
        }
        let expected = match step.want {
            Some(want) => answer.status == want,
            None => (200..300).contains(&answer.status),
        };
        let unexpected = (!expected).then(|| format!("status {}: {}", answer.status, answer.body));
        let mut body = answer.body;
        step.ignore.iter().for_each(|place| path::remove(&mut body, &self.cast.text(place)));
        if !step.pick.is_empty() && answer.status < 300 {
            let pick = |place: &String| (place.clone(), json!(path::find(&body, &self.cast.text(place))));
            body = step.pick.iter().map(pick).collect();
        }
        let request = step.request.clone().or_else(|| step.events.as_ref().map(|name| format!("events of {name}")));
        self.raw.push(Record {
            // As the case has it: saved values differ between servers.
            request: request.unwrap_or_default(),
            status: answer.status,
            content_type: answer.content_type,
            warnings: answer.warnings,
            body,
            // A random sequence expects nothing.
            surprise: late.or(unexpected).filter(|_| !self.staged),
        });
        Ok(())
    }

    /// Nobody waits for it. The definitions go because every server slows down with their number.
    async fn clean(&mut self, case: &Case) {
        self.watches.clear();
        if self.staged {
            return;
        }
        if case.crd.is_some() || case.mentions("customresourcedefinitions") || case.mentions("{crds}") {
            let path = format!("{}/tents.{}", self.cast.text("{crds}"), self.cast.group);
            let _ = send(self.client, Method::DELETE, &path, &[], String::new()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Record;
    use serde_json::Value;

    #[test]
    fn only_a_patch_of_what_is_gone_loses_its_warnings() {
        let patches = ["APPLY", "MERGE", "STRATEGIC", "JSONPATCH", "PATCH"].map(|verb| (verb, 404, 0));
        let others = [("MERGE", 200, 1), ("MERGE", 409, 1), ("MERGE", 422, 1), ("PUT", 404, 1), ("DELETE", 404, 1)];
        for (verb, status, warnings) in patches.into_iter().chain(others) {
            let mut record = Record {
                request: format!("{verb} {{tents}}/a"),
                status,
                content_type: String::new(),
                warnings: vec!["299 - \"unknown field\"".to_owned()],
                body: Value::Null,
                surprise: None,
            };
            record.forget_tries();
            assert_eq!(record.warnings.len(), warnings, "{verb} {status}");
        }
    }
}
