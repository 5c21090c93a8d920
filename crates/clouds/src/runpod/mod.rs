// SPDX-License-Identifier: Apache-2.0
//! RunPod: containers with GPUs, no machines. Everything that REST v2 can do is done there; spot pods, pods that the
//! cloud ends by itself and the balance need the older GraphQL, as long as it lasts.

pub mod fake;
mod graph;
mod order;
mod wire;

use std::sync::LazyLock;
use std::time::Duration;

use bivouac_market::{Capacity, Listing};
use http::header::{AUTHORIZATION, HeaderMap};
use serde_json::Value;

use crate::cloud::{Account, Boots, Capabilities, Cloud, Machine, Order, Owner, Pending, Prices};
use crate::credentials::{Credentials, bearer};
use crate::fault::{Fault, Operation, Outcome, gone_is_done};
use crate::pages::Cursors;
use crate::read;
use crate::tables::Tables;
use crate::wire::{Line, Reply, Wire};
use graph::Graph;
use order::{Container, Kind, Tier, without_secrets};
use wire::{Gpus, Pod, Pods};

pub const NAME: &str = "runpod";
pub const BASE: &str = "https://api.runpod.io";
/// How many GPUs of a kind a pod is offered with.
const COUNTS: [u32; 4] = [1, 2, 4, 8];

static TABLES: LazyLock<Tables> = LazyLock::new(|| crate::tables::built_in(NAME, include_str!("map.yaml")));

#[derive(Debug)]
pub struct Runpod {
    wire: Wire,
    graph: Graph,
}

// === impl Runpod ===

impl Runpod {
    pub fn new(credentials: &Credentials, line: Line, base: &str) -> Result<Self, Fault> {
        let wire = Wire::new(NAME, base, line, &TABLES);
        let (header, redactor) = bearer(&wire, credentials.need("key").map_err(|lack| lack.fault(&wire))?)?;
        let wire = wire.with_headers(HeaderMap::from_iter([(AUTHORIZATION, header)])).with_redactor(redactor);
        Ok(Self { graph: Graph::new(wire.clone()), wire })
    }

    /// Stock depends on how many are wanted at once, so each count is asked for.
    async fn catalogue(&self) -> Result<Vec<Listing>, Fault> {
        let mut answers = Vec::new();
        for tier in Tier::ALL {
            let mut most = 1;
            for count in COUNTS {
                if count > most {
                    break;
                }
                let call = self.wire.get(Operation::Offers, "/v2/catalog/gpus").query("include", "AVAILABILITY");
                let call = call.query("product", "POD").query("count", count).query("cloud", tier.word());
                let answer: Gpus = call.read().await?;
                most = answer.gpus.iter().map(|gpu| gpu.most(tier)).max().unwrap_or(0).max(most);
                answers.push((tier, count, answer));
            }
        }
        let extras = self.graph.extras().await;
        let mut listings = Vec::new();
        for (tier, count, answer) in answers {
            listings.extend(answer.gpus.into_iter().flat_map(|gpu| gpu.listings(tier, count, &extras)));
        }
        Ok(listings)
    }

    async fn buy(&self, order: &Order) -> Result<Machine, Fault> {
        let invalid = |says: String| self.wire.fault(Operation::Launch, Outcome::Invalid, says);
        let Some(container) = Container::of(order) else {
            return Err(invalid("it runs containers only".to_owned()));
        };
        let Some(kind) = Kind::read(&order.machine) else {
            return Err(invalid(format!("{:?} is not one of its machines", order.machine)));
        };
        let spot = order.capacity == Capacity::Spot;
        if spot && self.graph.is_retired() {
            return Err(invalid("its API for spot pods is retired".to_owned()));
        }
        let timed = order.kill_after.is_some() && !self.graph.is_retired();
        if spot || timed {
            self.by_graph(order, &container, &kind).await
        } else {
            self.by_rest(order, &container, &kind).await
        }
    }

    async fn by_rest(&self, order: &Order, container: &Container<'_>, kind: &Kind<'_>) -> Result<Machine, Fault> {
        let operation = Operation::Launch;
        let reply = self.wire.post(operation, "/v2/pods").json(&container.rest(order, kind)).reply().await?;
        if !reply.status.is_success() {
            return Err(self.refused(operation, &reply));
        }
        let pod: Pod =
            serde_json::from_slice(&reply.body).map_err(|error| self.wire.nonsense(operation, &reply, error))?;
        let machine = pod.machine();
        Ok(Machine {
            name: order.name(),
            claim: Some(order.claim.clone()),
            created: machine.created.or(Some(order.now)),
            region: if machine.region.is_empty() { order.region.clone() } else { machine.region },
            ..machine
        })
    }

    async fn by_graph(&self, order: &Order, container: &Container<'_>, kind: &Kind<'_>) -> Result<Machine, Fault> {
        let spot = order.capacity == Capacity::Spot;
        let bought =
            self.graph.buy(spot, &container.graph(order, kind)).await.map_err(|fault| self.explained(fault, spot))?;
        Ok(Machine {
            price: read::dollars(&bought.cost_per_hr),
            ..Machine::ordered(order, bought.id, &bought.desired_status.unwrap_or_default())
        })
    }

    /// The order at which the older API turned out to be retired bought nothing. On demand it is sold elsewhere, but
    /// without the timer: whoever ordered is to decide about that, and reads it in the capabilities.
    fn explained(&self, fault: Fault, spot: bool) -> Fault {
        match fault.status {
            Some(410) if spot => Fault { says: "its API for spot pods is retired".to_owned(), ..fault },
            Some(410) => {
                let says = "its API for pods that end by themselves is retired; the next order goes without".to_owned();
                Fault { outcome: Outcome::Transient, says, ..fault }
            }
            _ => fault,
        }
    }

    /// A body that lacks a key is told to have others too many: what is missing comes first.
    fn refused(&self, operation: Operation, reply: &Reply) -> Fault {
        let fault = self.wire.refusal(operation, reply);
        let body = reply.json().unwrap_or_default();
        let Some(errors) = body.get("errors").and_then(Value::as_array) else { return fault };
        let mut lines: Vec<String> = errors.iter().map(line).collect();
        lines.sort_by_key(|line| !line.to_ascii_lowercase().contains("missing"));
        lines.extend(body.get("detail").and_then(Value::as_str).map(str::to_owned));
        let worded = self.wire.fault(operation, fault.outcome, lines.join("; "));
        Fault { says: worded.says, ..fault }
    }

    async fn all(&self, operation: Operation) -> Result<Vec<Pod>, Fault> {
        let mut pods: Vec<Pod> = Vec::new();
        let (mut cursors, mut cursor) = (Cursors::default(), None::<String>);
        loop {
            let call = self.wire.get(operation, "/v2/pods");
            let page: Pods = match &cursor {
                Some(cursor) => call.query("cursor", cursor).read().await?,
                None => call.read().await?,
            };
            cursor = cursors.next(&self.wire, operation, page.cursor())?;
            for pod in page.pods {
                if !pods.iter().any(|known| known.id == pod.id) {
                    pods.push(pod);
                }
            }
            if cursor.is_none() {
                return Ok(pods);
            }
        }
    }

    async fn check(&self) -> Result<Account, Fault> {
        self.all(Operation::Verify).await?;
        let mut account = Account::default();
        if self.graph.is_retired() {
            return Ok(account);
        }
        match self.graph.myself().await {
            Ok(myself) => {
                account.name = myself.email;
                account.balance = read::dollars(&myself.client_balance);
            }
            Err(_) if self.graph.is_retired() => {
                account.notes.push("The older API is retired: no spot pods, no timers, no balance.".to_owned());
            }
            Err(fault) => account.notes.push(format!("The balance is not known: {}", fault.says)),
        }
        Ok(account)
    }
}

impl Cloud for Runpod {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            boots: Boots::Container,
            spot: !self.graph.is_retired(),
            kill_timer: !self.graph.is_retired(),
            idempotent_launch: false,
            prices: Prices::Api,
            settles_within: Duration::from_secs(60),
            // Environment and arguments together; the cloud names no number.
            user_data_limit: 32 << 10,
        }
    }

    fn offers(&self) -> Pending<'_, Vec<Listing>> {
        Box::pin(self.catalogue())
    }

    fn launch<'a>(&'a self, order: &'a Order) -> Pending<'a, Machine> {
        Box::pin(async move { self.buy(order).await.map_err(|fault| without_secrets(fault, order)) })
    }

    fn describe<'a>(&'a self, id: &'a str) -> Pending<'a, Machine> {
        Box::pin(async move {
            let pod: Pod = self.wire.get(Operation::Describe, format!("/v2/pods/{id}")).read().await?;
            Ok(pod.machine())
        })
    }

    fn list<'a>(&'a self, owner: &'a Owner) -> Pending<'a, Vec<Machine>> {
        Box::pin(async move {
            let all = self.all(Operation::List).await?;
            Ok(all.into_iter().filter(|pod| pod.belongs_to(owner)).map(Pod::machine).collect())
        })
    }

    fn terminate<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            gone_is_done(self.wire.delete(Operation::Terminate, format!("/v2/pods/{id}")).accepted().await)
        })
    }

    fn verify(&self) -> Pending<'_, Account> {
        Box::pin(self.check())
    }
}

/// One line of a refusal, which is a text or has one.
fn line(error: &Value) -> String {
    let text = error.as_str().or_else(|| ["message", "detail"].iter().find_map(|key| error.get(key)?.as_str()));
    text.map_or_else(|| error.to_string(), str::to_owned)
}
