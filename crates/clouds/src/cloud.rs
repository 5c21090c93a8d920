// SPDX-License-Identifier: Apache-2.0
//! What every cloud is asked for, and what it answers with.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use bivouac_core::Money;
use bivouac_market::{Capacity, Listing};
use jiff::Timestamp;

use crate::fault::Fault;
use crate::secret::Secret;

/// An answer that is on its way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// A cloud that sells machines. One value speaks for one credential.
///
/// No method tries again on its own: whoever calls knows whether it may. A launch whose fate is unknown is
/// [`Ambiguous`](crate::Outcome::Ambiguous), and a listing is complete or a fault.
pub trait Cloud: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;

    fn capabilities(&self) -> Capabilities;

    /// Everything that is for sale, at today's prices.
    fn offers(&self) -> Pending<'_, Vec<Listing>>;

    /// Buys one machine.
    fn launch<'a>(&'a self, order: &'a Order) -> Pending<'a, Machine>;

    /// One machine. One that is gone is [`NotFound`](crate::Outcome::NotFound), or has the state that says so.
    fn describe<'a>(&'a self, id: &'a str) -> Pending<'a, Machine>;

    /// All machines that carry the owner's mark, none left out.
    fn list<'a>(&'a self, owner: &'a Owner) -> Pending<'a, Vec<Machine>>;

    /// Gives a machine back, with what was made for it. One that is gone already is given back.
    fn terminate<'a>(&'a self, id: &'a str) -> Pending<'a, ()>;

    /// Takes back what was made beforehand for a launch that was in doubt and came to nothing: to be called when no
    /// machine of this name has shown up in time. Most clouds make nothing beforehand.
    fn abandon<'a>(&'a self, _name: &'a str) -> Pending<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether the credential is good, and what the account says about itself.
    fn verify(&self) -> Pending<'_, Account>;
}

/// What a cloud can do, as far as buyers must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    pub boots: Boots,
    pub spot: bool,
    /// The cloud itself ends a machine after a time.
    pub kill_timer: bool,
    /// The same order twice is one machine.
    pub idempotent_launch: bool,
    /// Where prices come from.
    pub prices: Prices,
    /// How long after a launch a listing may still lack the machine, and after an end still have it.
    pub settles_within: Duration,
    /// The most that goes along to the first boot, in bytes.
    pub user_data_limit: usize,
}

/// What a machine can be made to start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boots {
    /// An operating system of our choice.
    Talos,
    /// The cloud's own Linux, which reads our user data.
    CloudInit,
    /// No machine, only a container.
    Container,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prices {
    /// The cloud tells.
    Api,
    /// It does not; we bring a table, and learn from the first bill.
    Table,
}

/// Who buys: the first eight hexadecimal digits of the cluster's UID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub String);

/// One machine to be bought.
#[derive(Clone, Debug)]
pub struct Order {
    pub owner: Owner,
    /// UID of the claim, which was written before.
    pub claim: String,
    /// Name of the claim; the machine is called after it.
    pub claim_name: String,
    pub pool: String,
    /// Counts the launches of this claim: another attempt is another order.
    pub attempt: u32,
    pub now: Timestamp,
    /// What was chosen.
    pub region: String,
    pub zone: String,
    pub machine: String,
    pub gpu: String,
    pub gpus: u32,
    pub capacity: Capacity,
    /// What it may cost an hour. Nothing dearer is bought where the cloud can be told.
    pub price: Money,
    pub boot: Boot,
    pub disk_gib: u32,
    /// The cloud is told to end it after this time, where it can.
    pub kill_after: Option<Duration>,
    /// Besides our own marks.
    pub tags: BTreeMap<String, String>,
}

/// What the machine starts with.
#[derive(Clone, Debug)]
pub enum Boot {
    /// Talos, from an image or a network boot script of the cloud's kind, with its machine config.
    Talos {
        image: String,
        config: Secret,
    },
    /// The cloud's Linux, with a script or cloud-init for its first start. `None` takes the cloud's newest.
    CloudInit {
        image: Option<String>,
        user_data: Secret,
    },
    Container {
        image: String,
        args: Vec<String>,
        env: BTreeMap<String, Secret>,
        ports: Vec<u16>,
    },
}

/// A machine as the cloud describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub id: String,
    pub name: String,
    /// UID of its claim, from its mark; `None` where the cloud keeps no marks.
    pub claim: Option<String>,
    pub state: State,
    /// The cloud's own word for its state.
    pub word: String,
    pub public_ip: Option<IpAddr>,
    pub private_ip: Option<IpAddr>,
    /// What it really costs an hour, where the cloud tells.
    pub price: Option<Money>,
    pub created: Option<Timestamp>,
    /// When the cloud stopped counting, where it tells.
    pub ended: Option<Timestamp>,
    pub region: String,
}

/// Where a machine is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
pub enum State {
    /// Asked for, not up.
    Pending,
    Running,
    /// Not up, and something of it is still paid for.
    Stopped,
    /// The cloud took it back.
    Interrupted,
    Terminating,
    Gone,
    Failed,
    /// The cloud used a word that we do not know.
    Unknown,
}

/// What the account says about itself; `None` where the cloud does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub name: Option<String>,
    pub balance: Option<Money>,
    /// How many machines it may have.
    pub machine_limit: Option<u32>,
    /// What was seen that somebody should know, such as a right that is missing.
    pub notes: Vec<String>,
}

// === impl Owner ===

impl Owner {
    /// The mark of a cluster.
    pub fn of_cluster(uid: &str) -> Self {
        Self(uid.chars().filter(char::is_ascii_hexdigit).take(8).collect::<String>().to_ascii_lowercase())
    }

    /// What every name of ours begins with.
    pub fn prefix(&self) -> String {
        format!("tgp-{}-", self.0)
    }
}

// === impl Order ===

impl Order {
    /// `tgp-<owner>-<claim>`, at most 60 characters: what every cloud takes for a name.
    pub fn name(&self) -> String {
        let mut name = self.owner.prefix() + &self.claim_name;
        name.truncate(60);
        name.trim_end_matches('-').to_owned()
    }

    /// Our marks and the class's tags, in that order of weight.
    pub fn marks(&self) -> BTreeMap<String, String> {
        let mut marks = self.tags.clone();
        marks.extend([
            ("tgp-cluster".to_owned(), self.owner.0.clone()),
            ("tgp-claim".to_owned(), self.claim.clone()),
            ("tgp-pool".to_owned(), self.pool.clone()),
            ("tgp-created".to_owned(), self.now.as_second().to_string()),
        ]);
        marks
    }

    /// The same for the same claim and attempt, and for nothing else: a UUID.
    pub fn token(&self) -> String {
        bivouac_core::ids::uuid_of(&format!("{}/{}", self.claim, self.attempt))
    }
}

// === impl Machine ===

impl Machine {
    /// A machine of which the cloud has said no more than its id. `word` is its first state.
    pub fn ordered(order: &Order, id: String, word: &str) -> Self {
        Self {
            id,
            name: order.name(),
            claim: Some(order.claim.clone()),
            state: State::Pending,
            word: word.to_owned(),
            public_ip: None,
            private_ip: None,
            price: None,
            created: Some(order.now),
            ended: None,
            region: order.region.clone(),
        }
    }
}

// === impl State ===

impl State {
    /// As the original operator names states in status and metrics.
    pub fn public_name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Terminating => "terminating",
            Self::Gone | Self::Interrupted | Self::Stopped => "terminated",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}
