// SPDX-License-Identifier: Apache-2.0
//! Vast.ai: containers on machines of other people, for a price or for a bid. Only hosts that Vast has verified are
//! bought from, for what runs there is given secrets.

pub mod fake;
mod order;
mod wire;

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use bivouac_core::Money;
use bivouac_market::Listing;
use http::Method;
use http::header::{AUTHORIZATION, HeaderMap};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::cloud::{Account, Boots, Capabilities, Cloud, Machine, Order, Owner, Pending, Prices};
use crate::credentials::{Credentials, bearer};
use crate::fault::{Fault, Operation, Outcome, gone_is_done};
use crate::read;
use crate::tables::Tables;
use crate::wire::{Call, Line, Reply, Wire};
use wire::{Instance, Instances, Offers, One, User, Verdict};

pub const NAME: &str = "vast";
pub const BASE: &str = "https://console.vast.ai/api/v0";
/// The disk that offers are priced with; storage is a part of every price.
const DISK_GIB: u32 = 100;
/// More offers than there are. Without it only the first few come.
const LIMIT: u32 = 10_000;

static TABLES: LazyLock<Tables> = LazyLock::new(|| crate::tables::built_in(NAME, include_str!("map.yaml")));

#[derive(Debug)]
pub struct Vast {
    wire: Wire,
}

// === impl Vast ===

impl Vast {
    pub fn new(credentials: &Credentials, line: Line, base: &str) -> Result<Self, Fault> {
        let wire = Wire::new(NAME, base, line, &TABLES);
        let (header, redactor) = bearer(&wire, credentials.need("key").map_err(|lack| lack.fault(&wire))?)?;
        Ok(Self { wire: wire.with_headers(HeaderMap::from_iter([(AUTHORIZATION, header)])).with_redactor(redactor) })
    }

    /// What can be had now on a verified host, cheapest first. `kind` is `ondemand` or `bid`.
    async fn search(&self, kind: &str) -> Result<Offers, Fault> {
        let body = json!({
            "verified": { "eq": true },
            "rentable": { "eq": true },
            "rented": { "eq": false },
            "disk_space": { "gte": DISK_GIB },
            "allocated_storage": DISK_GIB,
            "order": [["dph_total", "asc"]],
            "limit": LIMIT,
            "type": kind,
        });
        self.read(Operation::Offers, self.wire.post(Operation::Offers, "/bundles/").json(&body)).await
    }

    async fn buy(&self, order: &Order) -> Result<Machine, Fault> {
        let operation = Operation::Launch;
        let invalid = |says: String| self.wire.fault(operation, Outcome::Invalid, says);
        let (path, body) = (order::path(order).map_err(invalid)?, order::body(order).map_err(invalid)?);
        let reply = self.wire.call(operation, Method::PUT, path).json(&body).reply().await?;
        let verdict = Verdict::of(&reply);
        let refused = !reply.status.is_success() || verdict.is_no();
        match verdict.contract.clone() {
            Some(id) if refused => Err(self.undone(&reply, &verdict, &id).await),
            Some(id) => Ok(Machine::ordered(order, id, "created")),
            None if !reply.status.is_success() => Err(self.wire.refusal(operation, &reply)),
            None if refused => Err(self.no(operation, &reply, &verdict)),
            None if verdict.success == Some(true) => {
                Err(self.wire.fault(operation, Outcome::Ambiguous, "it accepted, and named no machine"))
            }
            None => Err(self.wire.nonsense(operation, &reply, "it says neither yes nor no")),
        }
    }

    /// A bid that is too low is refused and still makes a machine, which is stopped and paid for. It must go before
    /// anybody hears of the refusal, for nobody would look for it then.
    async fn undone(&self, reply: &Reply, verdict: &Verdict, id: &str) -> Fault {
        match self.end(id).await {
            Ok(()) => self.no(Operation::Launch, reply, verdict),
            Err(fault) => {
                let says = format!("it refused ({}) and left {id} behind, which does not end: {fault}", verdict.says);
                self.wire.fault(Operation::Launch, Outcome::Ambiguous, says)
            }
        }
    }

    async fn end(&self, id: &str) -> Result<(), Fault> {
        let operation = Operation::Terminate;
        gone_is_done(self.answer(operation, self.wire.delete(operation, format!("/instances/{id}/"))).await)
    }

    /// An answer that is no refusal, also not one that looks like success.
    async fn answer(&self, operation: Operation, call: Call<'_>) -> Result<Reply, Fault> {
        let reply = call.accepted().await?;
        let verdict = Verdict::of(&reply);
        if verdict.is_no() { Err(self.no(operation, &reply, &verdict)) } else { Ok(reply) }
    }

    async fn read<T: DeserializeOwned>(&self, operation: Operation, call: Call<'_>) -> Result<T, Fault> {
        let reply = self.answer(operation, call).await?;
        serde_json::from_slice(&reply.body).map_err(|error| self.wire.nonsense(operation, &reply, error))
    }

    /// An offer that is refused without a known word is taken by somebody else.
    fn no(&self, operation: Operation, reply: &Reply, verdict: &Verdict) -> Fault {
        let unknown = if operation.spends() { Outcome::NoCapacity } else { Outcome::Transient };
        let outcome = TABLES.read_code(operation, &verdict.error, &verdict.says).unwrap_or(unknown);
        Fault { status: Some(reply.status.as_u16()), ..self.wire.fault(operation, outcome, &verdict.says) }
    }

    async fn all(&self) -> Result<Vec<Instance>, Fault> {
        let operation = Operation::List;
        let call = self.wire.get(operation, "/instances/").query("owner", "me");
        let all: Instances = self.read(operation, call).await?;
        if all.next_token.is_some_and(|token| !token.is_empty()) {
            return Err(self.wire.fault(operation, Outcome::Transient, "the list has pages, and used to have none"));
        }
        Ok(all.instances)
    }

    async fn check(&self) -> Result<Account, Fault> {
        let operation = Operation::Verify;
        let user: User = self.read(operation, self.wire.get(operation, "/users/current/")).await?;
        let balance = read::dollars(&user.credit);
        let mut account = Account { name: user.email, balance, ..Account::default() };
        if balance.is_some_and(|balance| balance <= Money::ZERO) {
            account.notes.push("There is no credit left: Vast stops what runs.".to_owned());
        }
        Ok(account)
    }
}

impl Cloud for Vast {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            boots: Boots::Container,
            spot: true,
            kill_timer: false,
            idempotent_launch: false,
            prices: Prices::Api,
            settles_within: Duration::from_secs(60),
            // Environment and arguments together; the cloud names no number.
            user_data_limit: 32 << 10,
        }
    }

    fn offers(&self) -> Pending<'_, Vec<Listing>> {
        Box::pin(async move {
            let (on_demand, bids) = (self.search("ondemand").await?, self.search("bid").await?);
            Ok(wire::listings(on_demand, bids))
        })
    }

    fn launch<'a>(&'a self, order: &'a Order) -> Pending<'a, Machine> {
        Box::pin(async move { self.buy(order).await.map_err(|fault| order::without_secrets(fault, order)) })
    }

    fn describe<'a>(&'a self, id: &'a str) -> Pending<'a, Machine> {
        Box::pin(async move {
            let operation = Operation::Describe;
            let one: One = self.read(operation, self.wire.get(operation, format!("/instances/{id}/"))).await?;
            let nothing = || self.wire.fault(operation, Outcome::NotFound, "it knows no such machine");
            Ok(one.instances.ok_or_else(nothing)?.machine())
        })
    }

    fn list<'a>(&'a self, owner: &'a Owner) -> Pending<'a, Vec<Machine>> {
        Box::pin(async move {
            let all = self.all().await?.into_iter();
            let mut seen = BTreeSet::new();
            let ours = all.filter(|instance| instance.belongs_to(owner)).map(Instance::machine);
            Ok(ours.filter(|machine| seen.insert(machine.id.clone())).collect())
        })
    }

    fn terminate<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(self.end(id))
    }

    fn verify(&self) -> Pending<'_, Account> {
        Box::pin(self.check())
    }
}
