// SPDX-License-Identifier: Apache-2.0
//! Paperspace: virtual machines with Ubuntu, no spot, no tags and no price list. A machine takes a startup script that
//! is made before it and thrown away with it.

pub mod fake;
mod prices;
mod script;
mod wire;

use std::sync::LazyLock;
use std::time::Duration;

use bivouac_market::Listing;
use http::header::{AUTHORIZATION, HeaderMap};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::cloud::{Account, Boot, Boots, Capabilities, Cloud, Machine, Order, Owner, Pending, Prices, State};
use crate::credentials::{Credentials, bearer};
use crate::fault::{Fault, Operation, Outcome, gone_is_done};
use crate::pages::Cursors;
use crate::secret::Redactor;
use crate::tables::Tables;
use crate::wire::{Line, Wire};
use prices::Observed;
use wire::{Available, Created, Event, Identified, Page, Session, Template};

pub const NAME: &str = "paperspace";
pub const BASE: &str = "https://api.paperspace.com/v1";
/// The disks there are, in GB.
const DISKS: [u32; 10] = [50, 100, 250, 500, 1000, 2000, 4000, 8000, 12_000, 16_000];
/// The most that a page has.
const PAGE: u32 = 120;

static TABLES: LazyLock<Tables> = LazyLock::new(|| crate::tables::built_in(NAME, include_str!("map.yaml")));

#[derive(Debug)]
pub struct Paperspace {
    wire: Wire,
    observed: Observed,
}

// === impl Paperspace ===

impl Paperspace {
    pub fn new(credentials: &Credentials, line: Line, base: &str) -> Result<Self, Fault> {
        let wire = Wire::new(NAME, base, line, &TABLES);
        let (header, redactor) = bearer(&wire, credentials.need("key").map_err(|lack| lack.fault(&wire))?)?;
        let wire = wire.with_headers(HeaderMap::from_iter([(AUTHORIZATION, header)])).with_redactor(redactor);
        Ok(Self { wire, observed: Observed::default() })
    }

    /// All of a list, or a fault.
    async fn pages<T>(&self, operation: Operation, path: &str, query: &[(&str, &str)]) -> Result<Vec<T>, Fault>
    where
        T: DeserializeOwned + Identified,
    {
        let mut all: Vec<T> = Vec::new();
        let (mut cursors, mut cursor) = (Cursors::default(), None::<String>);
        loop {
            let call = self.wire.get(operation, path).query("limit", PAGE);
            let call = query.iter().fold(call, |call, (key, value)| call.query(key, value));
            let call = cursor.iter().fold(call, |call, cursor| call.query("after", cursor));
            let page: Page<T> = call.read().await?;
            if page.has_more && page.next_page.as_ref().is_none_or(String::is_empty) {
                return Err(self.wire.fault(operation, Outcome::Transient, "it has more, and does not say where"));
            }
            cursor = cursors.next(&self.wire, operation, page.next_page.filter(|_| page.has_more))?;
            for item in page.items {
                if !all.iter().any(|known| known.id() == item.id()) {
                    all.push(item);
                }
            }
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    async fn templates(&self, operation: Operation) -> Result<Vec<Template>, Fault> {
        let mut templates: Vec<Template> = self.pages(operation, "/os-templates", &[]).await?;
        templates.retain(Template::is_ubuntu);
        Ok(templates)
    }

    /// One question for each type and region, sixty-nine at most: only for what can be started at all.
    async fn market(&self) -> Result<Vec<Listing>, Fault> {
        let templates = self.templates(Operation::Offers).await?;
        let mut listings = self.observed.listings();
        for listing in &mut listings {
            let can_start = templates.iter().any(|template| template.is_for(&listing.machine) != Some(false));
            listing.sold_out = !can_start || !self.has(Operation::Offers, &listing.machine, &listing.region).await?;
        }
        Ok(listings)
    }

    async fn has(&self, operation: Operation, machine: &str, region: &str) -> Result<bool, Fault> {
        let call = self.wire.get(operation, "/machine-availability");
        match call.query("machineType", machine).query("region", region).read::<Available>().await {
            Ok(answer) => Ok(answer.available),
            // Our table may name a type that is not sold any more, or not there.
            Err(fault) if matches!(fault.outcome, Outcome::Invalid | Outcome::NotFound) => match fault.status {
                Some(400 | 404 | 422) => Ok(false),
                _ => Err(fault),
            },
            Err(fault) => Err(fault),
        }
    }

    /// The system that it starts with.
    async fn template(&self, order: &Order, image: Option<&str>) -> Result<String, Fault> {
        if let Some(image) = image {
            return Ok(image.to_owned());
        }
        let templates = self.templates(Operation::Verify).await?;
        let fitting = templates.iter().filter(|template| template.is_for(&order.machine) != Some(false));
        let best = fitting.max_by(|one, other| one.rank().cmp(&other.rank()));
        let none = || format!("it has no Ubuntu for {}", order.machine);
        best.map(|template| template.id.clone())
            .ok_or_else(|| self.wire.fault(Operation::Launch, Outcome::Invalid, none()))
    }

    async fn buy(&self, order: &Order) -> Result<Machine, Fault> {
        let invalid = |says: String| self.wire.fault(Operation::Launch, Outcome::Invalid, says);
        let Boot::CloudInit { image, user_data } = &order.boot else {
            return Err(invalid("it starts its own Ubuntu with a script only".to_owned()));
        };
        let Some(disk) = DISKS.into_iter().find(|size| *size >= order.disk_gib) else {
            return Err(invalid(format!("it has no disk of {} GiB", order.disk_gib)));
        };
        // Nothing is bought before the launch itself, so all that goes wrong here is harmless.
        if !self.has(Operation::Verify, &order.machine, &order.region).await.map_err(before_launch)? {
            return Err(self.wire.fault(Operation::Launch, Outcome::NoCapacity, "it says that none is available"));
        }
        let template = self.template(order, image.as_deref()).await.map_err(before_launch)?;
        let script = match self.make_script(&order.name(), user_data.reveal()).await {
            Ok(script) => script,
            Err(fault) => {
                // It may have been made all the same.
                let _ = self.drop_scripts(Operation::Verify, Some(&order.name()), "").await;
                return Err(before_launch(fault));
            }
        };
        let body = machine(order, &template, &script, disk);
        match self.wire.post(Operation::Launch, "/machines").json(&body).read::<Created>().await {
            Ok(created) => Ok(self.seen(created.data)),
            Err(fault) => {
                // A machine that may be there needs it; the end of the machine is the end of it.
                if fault.outcome != Outcome::Ambiguous {
                    self.forget_script(&script).await;
                }
                Err(fault)
            }
        }
    }

    /// Every machine tells what one like it costs.
    fn seen(&self, machine: wire::Machine) -> Machine {
        self.observed.learn(machine.machine_type.as_deref().unwrap_or_default(), &machine.region(), machine.price());
        machine.machine()
    }

    async fn look(&self, id: &str) -> Result<Machine, Fault> {
        let found: wire::Machine = self.wire.get(Operation::Describe, format!("/machines/{id}")).read().await?;
        let machine = self.seen(found);
        if !matches!(machine.state, State::Pending | State::Stopped) {
            return Ok(machine);
        }
        // A machine that could not be made says nothing of it itself. Without events it is what it says it is.
        let query = [("machineId", id)];
        let events: Vec<Event> = self.pages(Operation::Describe, "/machine-events", &query).await.unwrap_or_default();
        Ok(match events.iter().find_map(Event::verdict) {
            Some((state, word)) => Machine { state, word: self.wire.redactor().clean(&word), ..machine },
            None => machine,
        })
    }

    /// The script goes by the machine's name, so that is asked for first.
    async fn end(&self, id: &str) -> Result<(), Fault> {
        let path = format!("/machines/{id}");
        let known = self.wire.get(Operation::Terminate, &path).read::<wire::Machine>().await;
        let name = known.ok().and_then(|machine| machine.name);
        gone_is_done(self.wire.delete(Operation::Terminate, path).accepted().await)?;
        self.drop_scripts(Operation::Terminate, name.as_deref(), id).await
    }
}

impl Cloud for Paperspace {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            boots: Boots::CloudInit,
            spot: false,
            // It stops a machine after a time, and goes on counting for disk and address: that is no end.
            kill_timer: false,
            idempotent_launch: false,
            prices: Prices::Table,
            settles_within: Duration::from_secs(60),
            user_data_limit: 64 << 10,
        }
    }

    fn offers(&self) -> Pending<'_, Vec<Listing>> {
        Box::pin(self.market())
    }

    fn launch<'a>(&'a self, order: &'a Order) -> Pending<'a, Machine> {
        Box::pin(async move { self.buy(order).await.map_err(|fault| without_secrets(fault, order)) })
    }

    fn describe<'a>(&'a self, id: &'a str) -> Pending<'a, Machine> {
        Box::pin(self.look(id))
    }

    fn list<'a>(&'a self, owner: &'a Owner) -> Pending<'a, Vec<Machine>> {
        Box::pin(async move {
            let all: Vec<wire::Machine> = self.pages(Operation::List, "/machines", &[]).await?;
            Ok(all.into_iter().filter(|machine| machine.belongs_to(owner)).map(|machine| self.seen(machine)).collect())
        })
    }

    fn terminate<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(self.end(id))
    }

    /// Its script holds what nobody else may know.
    fn abandon<'a>(&'a self, name: &'a str) -> Pending<'a, ()> {
        Box::pin(self.drop_scripts(Operation::Terminate, Some(name), ""))
    }

    fn verify(&self) -> Pending<'_, Account> {
        Box::pin(async move {
            let session: Session = self.wire.get(Operation::Verify, "/auth/session").read().await?;
            let notes = vec![format!("Prices are from a table of {}.", prices::TABLE_OF)];
            let Session { team } = session;
            Ok(Account { name: team.namespace, balance: None, machine_limit: team.max_machines, notes })
        })
    }
}

/// What `POST /machines` wants.
fn machine(order: &Order, template: &str, script: &str, disk: u32) -> Value {
    let mut body = Map::from_iter([
        ("name".to_owned(), json!(order.name())),
        ("machineType".to_owned(), json!(order.machine)),
        ("templateId".to_owned(), json!(template)),
        ("diskSize".to_owned(), json!(disk)),
        ("region".to_owned(), json!(order.region)),
        ("publicIpType".to_owned(), json!("dynamic")),
        ("startupScriptId".to_owned(), json!(script)),
        ("startOnCreate".to_owned(), json!(true)),
    ]);
    if let Some(after) = order.kill_after {
        body.insert("autoShutdownEnabled".to_owned(), json!(true));
        body.insert("autoShutdownTimeout".to_owned(), json!(after.as_secs().div_ceil(3600).max(1)));
        body.insert("autoShutdownForce".to_owned(), json!(true));
    }
    Value::Object(body)
}

/// The fault of a launch that was not sent.
fn before_launch(fault: Fault) -> Fault {
    let outcome = if fault.outcome == Outcome::NotFound { Outcome::Transient } else { fault.outcome };
    Fault { operation: Operation::Launch, outcome, ..fault }
}

/// A refusal may quote the script.
fn without_secrets(fault: Fault, order: &Order) -> Fault {
    let Boot::CloudInit { user_data, .. } = &order.boot else { return fault };
    let says = Redactor::new([user_data]).clean(&fault.says);
    Fault { says, ..fault }
}
