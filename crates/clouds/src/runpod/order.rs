// SPDX-License-Identifier: Apache-2.0
//! What an order looks like to RunPod, in both of its APIs.

use std::collections::BTreeMap;
use std::fmt;

use bivouac_core::Money;
use bivouac_market::Capacity;
use serde_json::{Map, Value, json};

use crate::cloud::{Boot, Order};
use crate::fault::Fault;
use crate::secret::{Redactor, Secret};

/// The two halves of the market: RunPod's own halls, and other people's machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Secure,
    Community,
}

/// What a machine name of ours stands for: `SECURE/2x NVIDIA GeForce RTX 4090`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind<'a> {
    pub tier: Tier,
    pub count: u32,
    /// The cloud's id of the GPU, letter by letter: some have two spaces in a row.
    pub gpu: &'a str,
}

/// The parts of a container order.
#[derive(Clone, Copy, Debug)]
pub struct Container<'a> {
    pub image: &'a str,
    pub args: &'a [String],
    pub env: &'a BTreeMap<String, Secret>,
    pub ports: &'a [u16],
}

/// A shorter text is a setting rather than a secret, and hiding it would hide half of every sentence.
const SECRET_FROM: usize = 8;

// === impl Tier ===

impl Tier {
    pub const ALL: [Self; 2] = [Self::Secure, Self::Community];

    pub fn word(self) -> &'static str {
        match self {
            Self::Secure => "SECURE",
            Self::Community => "COMMUNITY",
        }
    }
}

// === impl Kind ===

impl<'a> Kind<'a> {
    pub fn read(machine: &'a str) -> Option<Self> {
        let (tier, rest) = machine.split_once('/')?;
        let (count, gpu) = rest.split_once("x ")?;
        let tier = Tier::ALL.into_iter().find(|one| one.word() == tier)?;
        let count = count.parse().ok().filter(|count| *count > 0)?;
        (!gpu.is_empty()).then_some(Self { tier, count, gpu })
    }
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}x {}", self.tier.word(), self.count, self.gpu)
    }
}

// === impl Container ===

impl<'a> Container<'a> {
    pub fn of(order: &'a Order) -> Option<Self> {
        match &order.boot {
            Boot::Container { image, args, env, ports } => Some(Self { image, args, env, ports }),
            Boot::Talos { .. } | Boot::CloudInit { .. } => None,
        }
    }

    fn ports(&self) -> Vec<String> {
        self.ports.iter().map(|port| format!("{port}/tcp")).collect()
    }

    /// With our marks: there is no other place for them.
    fn env(&self, order: &Order) -> BTreeMap<String, String> {
        let mut env: BTreeMap<String, String> =
            self.env.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect();
        env.insert("TGP_CLAIM".to_owned(), order.claim.clone());
        env.insert("TGP_CLUSTER".to_owned(), order.owner.0.clone());
        env
    }

    /// For `POST /v2/pods`, which refuses every key that it does not know.
    pub fn rest(&self, order: &Order, kind: &Kind<'_>) -> Value {
        let mut body = Map::from_iter([
            ("name".to_owned(), json!(order.name())),
            ("image".to_owned(), json!(self.image)),
            ("gpu".to_owned(), json!({ "id": kind.gpu, "count": kind.count })),
            ("cloud".to_owned(), json!(kind.tier.word())),
            ("disk".to_owned(), json!(order.disk_gib)),
            ("env".to_owned(), json!(self.env(order))),
            ("ports".to_owned(), json!(self.ports())),
        ]);
        if !order.region.is_empty() {
            body.insert("dataCenterIds".to_owned(), json!([order.region]));
        }
        if !self.args.is_empty() {
            body.insert("args".to_owned(), json!(quoted(self.args)));
        }
        Value::Object(body)
    }

    /// The input of the GraphQL mutations.
    pub fn graph(&self, order: &Order, kind: &Kind<'_>) -> Value {
        let env: Vec<Value> =
            self.env(order).into_iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
        let mut input = Map::from_iter([
            ("cloudType".to_owned(), json!(kind.tier.word())),
            ("gpuTypeId".to_owned(), json!(kind.gpu)),
            ("gpuCount".to_owned(), json!(kind.count)),
            ("name".to_owned(), json!(order.name())),
            ("imageName".to_owned(), json!(self.image)),
            ("containerDiskInGb".to_owned(), json!(order.disk_gib)),
            ("volumeInGb".to_owned(), json!(0)),
            ("ports".to_owned(), json!(self.ports().join(","))),
            ("env".to_owned(), json!(env)),
        ]);
        if !order.region.is_empty() {
            input.insert("dataCenterId".to_owned(), json!(order.region));
        }
        if !self.args.is_empty() {
            input.insert("dockerArgs".to_owned(), json!(quoted(self.args)));
        }
        if order.capacity == Capacity::Spot {
            input.insert("bidPerGpu".to_owned(), number(share(order.price, kind.count)));
        }
        if let Some(end) = order.kill_after.and_then(|after| order.now.checked_add(after).ok()) {
            input.insert("terminateAfter".to_owned(), json!(end.to_string()));
        }
        Value::Object(input)
    }
}

/// One string that a shell takes apart into these words again.
pub fn quoted(words: &[String]) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_@%+=:,./-".contains(letter);
    let quote = |word: &String| match word.chars().all(plain) && !word.is_empty() {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// What one of `count` may cost, so that all of them together cost no more.
fn share(price: Money, count: u32) -> Money {
    Money::from_micros(price.micros() / i64::from(count.max(1)))
}

fn number(money: Money) -> Value {
    serde_json::from_str(&money.to_string()).unwrap_or_default()
}

/// A refusal may quote the order, and with it what the container was to know.
pub fn without_secrets(fault: Fault, order: &Order) -> Fault {
    let Some(container) = Container::of(order) else { return fault };
    let secrets = container.env.values().filter(|secret| secret.reveal().len() >= SECRET_FROM);
    let says = Redactor::new(secrets).clean(&fault.says);
    Fault { says, ..fault }
}
