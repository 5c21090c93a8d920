// SPDX-License-Identifier: Apache-2.0
//! Google Compute Engine: virtual machines of our own image, with spot and a timer that ends them.

pub mod fake;
mod offers;
mod order;
mod prices;
mod token;
mod wire;

use std::sync::LazyLock;
use std::time::Duration;

use bivouac_market::Listing;
use http::Method;
use http::header::AUTHORIZATION;

use self::wire::{Aggregated, Instance, Project, Running, Zone};
use crate::cloud::{Account, Boots, Capabilities, Cloud, Machine, Order, Owner, Pending, Prices};
use crate::credentials::Credentials;
use crate::fault::{Fault, Operation, Outcome, gone_is_done};
use crate::pages::Cursors;
use crate::tables::Tables;
use crate::wire::{Call, Line, Wire};

pub const NAME: &str = "gcp";
pub const BASE: &str = "https://compute.googleapis.com";
const BILLING: &str = "https://cloudbilling.googleapis.com";
const TOKENS: &str = "https://oauth2.googleapis.com";
/// A shortage is told within seconds; whoever waits longer waits for the machine itself.
const LOOKS: usize = 20;
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

static TABLES: LazyLock<Tables> = LazyLock::new(|| crate::tables::built_in(NAME, include_str!("map.yaml")));

#[derive(Debug)]
pub struct Gcp {
    compute: Wire,
    billing: Wire,
    oauth: Wire,
    tokens: token::Tokens,
    project: String,
}

// === impl Gcp ===

impl Gcp {
    pub fn new(credentials: &Credentials, line: Line, base: &str) -> Result<Self, Fault> {
        let compute = Wire::new(NAME, base, line, &TABLES);
        let project = credentials.need("project_id").map_err(|lack| lack.fault(&compute))?;
        let tokens = token::Tokens::new(credentials).map_err(|lack| lack.fault(&compute))?;
        for secret in ["access_token", "private_key"] {
            credentials.get(secret).into_iter().for_each(|secret| compute.redactor().learn(secret));
        }
        // A fake answers for all three.
        let at = |real: &'static str| compute.at(if base == BASE { real } else { base });
        Ok(Self { billing: at(BILLING), oauth: at(TOKENS), tokens, project: project.reveal().to_owned(), compute })
    }

    async fn call<'a>(
        &self,
        to: &'a Wire,
        operation: Operation,
        method: Method,
        path: String,
    ) -> Result<Call<'a>, Fault> {
        let header = self.tokens.header(&self.oauth, operation, jiff::Timestamp::now()).await?;
        Ok(to.call(operation, method, path).header(AUTHORIZATION, header))
    }

    async fn get(&self, operation: Operation, path: &str) -> Result<Call<'_>, Fault> {
        self.call(&self.compute, operation, Method::GET, format!("/compute/v1/projects/{}{path}", self.project)).await
    }

    /// All zones' parts of a list over all zones. One zone that was not asked makes the whole a fault.
    async fn aggregated(
        &self,
        operation: Operation,
        what: &str,
        filter: Option<String>,
    ) -> Result<Vec<(String, Zone)>, Fault> {
        let (mut zones, mut cursors, mut cursor) = (Vec::new(), Cursors::default(), None::<String>);
        loop {
            let mut call = self.get(operation, &format!("/aggregated/{what}")).await?;
            call = call.query("maxResults", 500).query("returnPartialSuccess", true);
            if let Some(filter) = &filter {
                call = call.query("filter", filter);
            }
            if let Some(cursor) = &cursor {
                call = call.query("pageToken", cursor);
            }
            let page: Aggregated<Zone> = call.read().await?;
            let silent = page.items.iter().find(|(_, zone)| !zone.is_whole()).map(|(name, _)| name.clone());
            if let Some(name) = silent.or(page.unreachables.into_iter().next()) {
                return Err(self.compute.fault(operation, Outcome::Transient, format!("{name} cannot be reached")));
            }
            let named = |(name, zone): (String, Zone)| (name.rsplit('/').next().unwrap_or_default().to_owned(), zone);
            zones.extend(page.items.into_iter().map(named));
            cursor = cursors.next(&self.compute, operation, page.next_page_token)?;
            if cursor.is_none() {
                return Ok(zones);
            }
        }
    }

    async fn buy(&self, order: &Order) -> Result<Machine, Fault> {
        let Some(body) = order::body(order) else {
            return Err(self.compute.fault(
                Operation::Launch,
                Outcome::Invalid,
                "it starts machines and no containers",
            ));
        };
        let path = format!("/compute/v1/projects/{}/zones/{}/instances", self.project, order.zone);
        let call = self.call(&self.compute, Operation::Launch, Method::POST, path).await?;
        let mut running: Running = call.query("requestId", order.token()).json(&body).read().await?;
        for _ in 0..LOOKS {
            if running.status == "DONE" {
                break;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
            let path = format!("/zones/{}/operations/{}", order.zone, running.name);
            // The launch is on its way whatever becomes of this question.
            let Ok(call) = self.get(Operation::Describe, &path).await else { break };
            let Ok(now) = call.read().await else { break };
            running = now;
        }
        self.judge(running)?;
        Ok(Machine {
            region: region_of(&order.zone).to_owned(),
            ..Machine::ordered(order, format!("{}/{}", order.zone, order.name()), "PROVISIONING")
        })
    }

    /// An operation that failed says so in its body, with a status of success.
    fn judge(&self, running: Running) -> Result<(), Fault> {
        let Some(error) = running.error.and_then(|error| error.errors.into_iter().next()) else { return Ok(()) };
        let outcome = TABLES.read_code(Operation::Launch, &error.code, &error.message).unwrap_or(Outcome::Ambiguous);
        Err(self.compute.fault(Operation::Launch, outcome, format!("{}: {}", error.code, error.message)))
    }

    /// `us-central1-a/tgp-…` as a path.
    fn instance(&self, operation: Operation, id: &str) -> Result<String, Fault> {
        let parts = id.split_once('/').filter(|(zone, name)| !zone.is_empty() && !name.is_empty());
        let (zone, name) = parts.ok_or_else(|| {
            self.compute.fault(operation, Outcome::NotFound, format!("{id} is no name of a machine here"))
        })?;
        Ok(format!("/zones/{zone}/instances/{name}"))
    }
}

impl Cloud for Gcp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            boots: Boots::Talos,
            spot: true,
            kill_timer: true,
            idempotent_launch: true,
            prices: Prices::Api,
            settles_within: Duration::from_secs(60),
            user_data_limit: 256 << 10,
        }
    }

    fn offers(&self) -> Pending<'_, Vec<Listing>> {
        Box::pin(self.listings())
    }

    fn launch<'a>(&'a self, order: &'a Order) -> Pending<'a, Machine> {
        Box::pin(self.buy(order))
    }

    fn describe<'a>(&'a self, id: &'a str) -> Pending<'a, Machine> {
        Box::pin(async move {
            let path = self.instance(Operation::Describe, id)?;
            let instance: Instance = self.get(Operation::Describe, &path).await?.read().await?;
            Ok(instance.machine(&TABLES))
        })
    }

    fn list<'a>(&'a self, owner: &'a Owner) -> Pending<'a, Vec<Machine>> {
        Box::pin(async move {
            let filter = format!("labels.tgp-cluster={}", owner.0);
            let zones = self.aggregated(Operation::List, "instances", Some(filter)).await?;
            let all = zones.into_iter().flat_map(|(_, zone)| zone.instances);
            Ok(all.filter(|one| one.belongs_to(owner)).map(|one| one.machine(&TABLES)).collect())
        })
    }

    fn terminate<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let Ok(path) = self.instance(Operation::Terminate, id) else { return Ok(()) };
            let path = format!("/compute/v1/projects/{}{path}", self.project);
            let call = self.call(&self.compute, Operation::Terminate, Method::DELETE, path).await?;
            gone_is_done(call.accepted().await)
        })
    }

    fn verify(&self) -> Pending<'_, Account> {
        Box::pin(async move {
            let project: Project = self.get(Operation::Verify, "").await?.read().await?;
            let gpus = project.quotas.iter().filter(|quota| quota.metric.contains("GPUS"));
            let notes =
                gpus.map(|quota| format!("{}: {} of {} used", quota.metric, quota.usage, quota.limit)).collect();
            Ok(Account { name: Some(project.name), notes, ..Account::default() })
        })
    }
}

/// `us-central1-a` is in `us-central1`.
pub(crate) fn region_of(zone: &str) -> &str {
    zone.rsplit_once('-').map_or(zone, |(region, _)| region)
}
