// SPDX-License-Identifier: Apache-2.0
//! What every cloud must pass against its fake, so that nobody needs an account to add one.
//!
//! Time is virtual: run behaviours on a paused tokio clock.

mod lies;
mod life;
mod manners;
mod refusals;

pub use manners::is_free_of;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use bivouac_market::{Capacity, Listing};

use crate::cloud::{Boot, Boots, Cloud, Machine, Order, Owner};
use crate::credentials::{Credentials, PUBLIC};
use crate::fake::Server;
use crate::fault::{Fault, Operation};
use crate::registry::Entry;
use crate::secret::Secret;

/// One thing that every cloud does.
pub struct Behaviour {
    pub name: &'static str,
    pub run: for<'a> fn(&'a Stage) -> Passing<'a>,
}

pub type Passing<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;
/// What is wrong, in words.
pub type Verdict = Result<(), String>;

/// A client and the fake that it speaks to.
pub struct Stage {
    pub cloud: Arc<dyn Cloud>,
    pub server: Server,
    pub credentials: Credentials,
}

/// All of them.
pub fn behaviours() -> Vec<Behaviour> {
    [life::ALL, refusals::ALL, lies::ALL, manners::ALL].into_iter().flatten().map(|one| Behaviour { ..*one }).collect()
}

/// A credential that only fakes accept. Each field is long enough that a piece of it would be found.
pub fn credentials(entry: &Entry) -> Credentials {
    let text = |field: &str| match PUBLIC.contains(&field) {
        true => format!("kit-{}", entry.name),
        // Only the beginning of the name: a long one would be a piece of the secret that everybody tells.
        false => format!("kit+{:.6}/{field}-7Hq2ZtRw9LxVbN4kPm8e", entry.name),
    };
    Credentials::of(entry.fields.iter().map(|field| (*field, Secret::new(text(field)))))
}

// === impl Stage ===

impl Stage {
    /// A fresh fake, and the client of `entry` on a line to it.
    pub fn of(entry: &Entry) -> Result<Self, String> {
        let credentials = credentials(entry);
        let server = entry.server(&credentials).map_err(|error| error.to_string())?;
        let cloud = (entry.client)(&credentials, server.line(), entry.base).map_err(|fault| fault.to_string())?;
        Ok(Self { cloud, server, credentials })
    }

    pub fn owner() -> Owner {
        Owner("1a2b3c4d".to_owned())
    }

    /// Something that is for sale now.
    pub async fn offer(&self) -> Result<Listing, String> {
        let offers = self.cloud.offers().await.map_err(|fault| fault.to_string())?;
        let open = offers.into_iter().find(|one| !one.sold_out && one.on_demand.is_some() && one.gpus >= 1000);
        open.ok_or_else(|| "nothing is for sale".to_owned())
    }

    /// An order for it, by the claim of this number.
    pub async fn order(&self, number: u32) -> Result<Order, String> {
        let offer = self.offer().await?;
        Ok(self.order_of(&offer, number))
    }

    pub fn order_of(&self, offer: &Listing, number: u32) -> Order {
        Order {
            owner: Self::owner(),
            claim: format!("c1a1{number:04}-0000-4000-8000-000000000000"),
            claim_name: format!("train-{number}"),
            pool: "train".to_owned(),
            attempt: 1,
            now: jiff::Timestamp::from_second(1_794_722_400).unwrap_or_default(),
            region: offer.region.clone(),
            zone: offer.zone.clone(),
            machine: offer.machine.clone(),
            gpu: offer.gpu.clone(),
            gpus: offer.gpus,
            capacity: Capacity::OnDemand,
            price: offer.on_demand.unwrap_or_default(),
            boot: self.boot(),
            disk_gib: 100,
            kill_after: Some(std::time::Duration::from_secs(24 * 3600)),
            tags: BTreeMap::new(),
        }
    }

    fn boot(&self) -> Boot {
        let text = Secret::new("#cloud-config\n# the user data of the kit\n");
        match self.cloud.capabilities().boots {
            Boots::Talos => Boot::Talos { image: "talos-of-the-kit".to_owned(), config: text },
            Boots::CloudInit => Boot::CloudInit { image: None, user_data: text },
            Boots::Container => Boot::Container {
                image: "registry.example/kit:1".to_owned(),
                args: vec!["sleep".to_owned(), "60 seconds".to_owned()],
                env: BTreeMap::from([("KIT".to_owned(), text)]),
                ports: vec![22],
            },
        }
    }

    async fn launched(&self, number: u32) -> Result<Machine, String> {
        let order = self.order(number).await?;
        self.cloud.launch(&order).await.map_err(|fault| format!("a plain launch failed: {fault}"))
    }

    async fn listed(&self) -> Result<Vec<Machine>, String> {
        self.cloud.list(&Self::owner()).await.map_err(|fault| format!("a plain listing failed: {fault}"))
    }

    /// Asks for one thing, whatever comes of it.
    async fn ask(&self, operation: Operation, order: &Order, id: &str) -> Result<(), Fault> {
        match operation {
            Operation::Offers => self.cloud.offers().await.map(drop),
            Operation::Launch => self.cloud.launch(order).await.map(drop),
            Operation::Describe => self.cloud.describe(id).await.map(drop),
            Operation::List => self.cloud.list(&Self::owner()).await.map(drop),
            Operation::Terminate => self.cloud.terminate(id).await,
            Operation::Verify => self.cloud.verify().await.map(drop),
        }
    }
}

/// Nothing is wrong if this is true.
fn ensure(is_right: bool, wrong: impl FnOnce() -> String) -> Verdict {
    if is_right { Ok(()) } else { Err(wrong()) }
}
