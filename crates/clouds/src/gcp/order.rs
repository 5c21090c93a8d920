// SPDX-License-Identifier: Apache-2.0
//! The request that buys a machine at Google.

use std::collections::BTreeMap;

use bivouac_market::Capacity;
use serde_json::{Value, json};

use crate::cloud::{Boot, Order};

/// Ubuntu with cloud-init, for whoever names no image.
const IMAGE: &str = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64";

/// `None` for what cannot be started here.
pub fn body(order: &Order) -> Option<Value> {
    let (image, user_data) = match &order.boot {
        Boot::Talos { image, config } => (image.as_str(), config),
        Boot::CloudInit { image, user_data } => (image.as_deref().unwrap_or(IMAGE), user_data),
        Boot::Container { .. } => return None,
    };
    let zone = &order.zone;
    let (machine, gpus) = parts(&order.machine);
    let mut body = json!({
        "name": order.name(),
        "machineType": format!("zones/{zone}/machineTypes/{machine}"),
        "scheduling": scheduling(order),
        "disks": [{
            "boot": true,
            "autoDelete": true,
            "initializeParams": {
                "sourceImage": image,
                "diskSizeGb": order.disk_gib.to_string(),
                "diskType": format!("zones/{zone}/diskTypes/{}", disk_type(machine)),
            },
        }],
        "networkInterfaces": [{ "network": "global/networks/default", "accessConfigs": [{ "type": "ONE_TO_ONE_NAT" }] }],
        "labels": labels(order),
        "metadata": { "items": [{ "key": "user-data", "value": user_data.reveal() }] },
    });
    if let (Some((count, kind)), Some(map)) = (gpus, body.as_object_mut()) {
        let kind = format!("zones/{zone}/acceleratorTypes/{kind}");
        map.insert("guestAccelerators".to_owned(), json!([{ "acceleratorType": kind, "acceleratorCount": count }]));
    }
    Some(body)
}

fn scheduling(order: &Order) -> Value {
    // A machine with GPUs cannot move to another host, so it must be allowed to end.
    let mut scheduling = json!({ "onHostMaintenance": "TERMINATE" });
    let Some(map) = scheduling.as_object_mut() else { return scheduling };
    let is_spot = order.capacity == Capacity::Spot;
    map.insert("provisioningModel".to_owned(), json!(if is_spot { "SPOT" } else { "STANDARD" }));
    if is_spot {
        map.insert("automaticRestart".to_owned(), json!(false));
    }
    if is_spot || order.kill_after.is_some() {
        map.insert("instanceTerminationAction".to_owned(), json!("DELETE"));
    }
    if let Some(after) = order.kill_after {
        map.insert("maxRunDuration".to_owned(), json!({ "seconds": after.as_secs().to_string() }));
    }
    scheduling
}

/// `n1-standard-8+1xnvidia-tesla-t4` is a machine and what is put into it; others have their GPUs inside.
pub fn parts(machine: &str) -> (&str, Option<(u32, &str)>) {
    let Some((machine, gpus)) = machine.split_once('+') else { return (machine, None) };
    let counted = gpus.split_once('x').and_then(|(count, kind)| Some((count.parse().ok()?, kind)));
    (machine, counted)
}

/// The newest families take only the newest disks.
fn disk_type(machine: &str) -> &'static str {
    if ["a4", "a4x"].contains(&machine.split('-').next().unwrap_or_default()) {
        "hyperdisk-balanced"
    } else {
        "pd-balanced"
    }
}

/// Small letters, digits, dashes and underscores, at most 63: what does not fit is left out or replaced.
fn labels(order: &Order) -> BTreeMap<String, String> {
    let fit = |text: &str| -> String {
        let letter =
            |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c.to_ascii_lowercase() } else { '_' };
        text.chars().map(letter).take(63).collect()
    };
    let begins_well = |key: &String| key.starts_with(|c: char| c.is_ascii_lowercase());
    let all = order.marks().into_iter().map(|(key, value)| (fit(&key), fit(&value)));
    all.filter(|(key, _)| begins_well(key)).collect()
}
