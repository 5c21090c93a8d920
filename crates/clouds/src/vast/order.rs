// SPDX-License-Identifier: Apache-2.0
//! What an order looks like to Vast.

use std::collections::BTreeMap;

use bivouac_core::Money;
use bivouac_market::Capacity;
use serde_json::{Value, json};

use crate::cloud::{Boot, Order};
use crate::fault::Fault;
use crate::secret::{Redactor, Secret};

/// Where our marks are that have no room in the label.
pub const CLAIM: &str = "TGP_CLAIM";
const CLUSTER: &str = "TGP_CLUSTER";

/// A shorter text is a setting rather than a secret, and hiding it would hide half of every sentence.
const SECRET_FROM: usize = 8;

/// The path that accepts an offer. A machine of ours is called by the id of its offer and nothing else: an offer is one
/// concrete machine, its id is all that can be ordered, and it changes with every rent, so nothing longer would last.
pub fn path(order: &Order) -> Result<String, String> {
    let offer = &order.machine;
    if offer.is_empty() || !offer.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{offer:?} is not one of its offers, which have numbers"));
    }
    Ok(format!("/asks/{offer}/"))
}

/// The body of `PUT /asks/{id}/`, or why there is none.
pub fn body(order: &Order) -> Result<Value, String> {
    let Boot::Container { image, args, env, ports } = &order.boot else {
        return Err("it runs containers only".to_owned());
    };
    let mut body = json!({
        "client_id": "me",
        "image": image,
        "disk": order.disk_gib,
        // The only mark that it keeps, and by which the machine is found again.
        "label": order.name(),
        "env": environment(order, env, ports)?,
        // The image starts as it is; the other ways put a shell in front of it.
        "runtype": "args",
        // What cannot start now is not to wait, stopped and paid for.
        "cancel_unavail": true,
    });
    let args = (!args.is_empty()).then(|| json!(args));
    let bid = (order.capacity == Capacity::Spot).then(|| number(order.price));
    if let Some(body) = body.as_object_mut() {
        let more = [("args", args), ("price", bid)];
        body.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    Ok(body)
}

/// Variables and ports stand in the same map: a name that begins like an option of Docker is one.
fn environment(
    order: &Order,
    env: &BTreeMap<String, Secret>,
    ports: &[u16],
) -> Result<BTreeMap<String, String>, String> {
    let is_option = |name: &str| name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace);
    if let Some(name) = env.keys().find(|name| is_option(name)) {
        return Err(format!("{name:?} would not be a variable there, but an option"));
    }
    let variables = env.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned()));
    let marks = [(CLAIM, &order.claim), (CLUSTER, &order.owner.0)];
    let marks = marks.into_iter().map(|(name, value)| (name.to_owned(), value.clone()));
    let ports = ports.iter().map(|port| (format!("-p {port}:{port}"), "1".to_owned()));
    Ok(variables.chain(marks).chain(ports).collect())
}

fn number(money: Money) -> Value {
    serde_json::from_str(&money.to_string()).unwrap_or_default()
}

/// A refusal may quote the order, and with it what the container was to know.
pub fn without_secrets(fault: Fault, order: &Order) -> Fault {
    let Boot::Container { env, .. } = &order.boot else { return fault };
    let secrets = env.values().filter(|secret| secret.reveal().len() >= SECRET_FROM);
    let says = Redactor::new(secrets).clean(&fault.says);
    Fault { says, ..fault }
}
