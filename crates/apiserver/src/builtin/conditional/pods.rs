// SPDX-License-Identifier: Apache-2.0
//! Pods and the parts of pods.

use bivouac_core::quantity::Quantity;
use serde_json::{Value, json};

use crate::object::Object;

use super::{Fields, fill, text};

/// `latest` is pulled again and again; a version or a digest is not.
pub(super) fn pull_policy(image: &str, policy: &str, fields: &mut Fields) {
    let image = text(fields, image);
    let always = if image.contains('@') {
        image.split('@').next().is_some_and(|image| tag(image) == Some("latest"))
    } else {
        !image.is_empty() && matches!(tag(image), None | Some("latest"))
    };
    fill(fields, policy, if always { "Always" } else { "IfNotPresent" });
}

fn tag(image: &str) -> Option<&str> {
    image.rsplit('/').next()?.split_once(':').map(|(_, tag)| tag)
}

/// The account has two names, of which one is old.
pub(super) fn spec(fields: &mut Fields) {
    let account = ["serviceAccountName", "serviceAccount"].map(|name| text(fields, name).to_owned());
    if let Some(account) = account.into_iter().find(|name| !name.is_empty()) {
        fields.insert("serviceAccountName".to_owned(), account.clone().into());
        fields.insert("serviceAccount".to_owned(), account.into());
    }
}

/// The first of the addresses is also a field of its own, which wins.
pub(super) fn addresses(fields: &mut Fields) {
    let first = fields.get("podIPs").and_then(|all| all.at("/0/ip")).cloned();
    match (fields.get("podIP").cloned(), first) {
        (Some(own), first) if first.as_ref() != Some(&own) => {
            fields.insert("podIPs".to_owned(), json!([{ "ip": own }]));
        }
        (None, Some(first)) => drop(fields.insert("podIP".to_owned(), first)),
        _ => {}
    }
}

/// A volume that names no source is an empty directory.
pub(super) fn volume(fields: &mut Fields) {
    if fields.keys().all(|name| name == "name") {
        fill(fields, "emptyDir", json!({}));
    }
}

/// Of pods themselves, not of templates.
pub(super) fn pod(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let host = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or_default();
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            requests(container);
            if host {
                host_ports(container);
            }
        }
    }
}

/// A new pod waits, in the class that its resources put it.
pub(super) fn begin(object: &mut Value) {
    let Some(class) = object.get("spec").and_then(Value::as_object).map(quality) else { return };
    let status = object.as_object_mut().map(|fields| fields.entry("status").or_insert_with(|| json!({})));
    if let Some(status) = status.and_then(Value::as_object_mut) {
        fill(status, "phase", "Pending");
        fill(status, "qosClass", class);
    }
}

/// What is limited and not requested is requested up to the limit.
fn requests(container: &mut Fields) {
    let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else { return };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    if let Some(requests) = resources.entry("requests").or_insert_with(|| json!({})).as_object_mut() {
        limits.into_iter().for_each(|(name, value)| fill(requests, &name, value));
    }
}

fn host_ports(container: &mut Fields) {
    let ports = container.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(number) = port.get("containerPort").cloned() {
            fill(port, "hostPort", number);
        }
    }
}

/// The class of service. Only CPU and memory count.
fn quality(spec: &Fields) -> &'static str {
    let whole =
        spec.get("resources").filter(|resources| resources.get("requests").or(resources.get("limits")).is_some());
    let containers = ["containers", "initContainers"].iter().filter_map(|list| spec.get(*list)?.as_array()).flatten();
    let all: Vec<&Value> = match whole {
        Some(whole) => vec![whole],
        None => containers.map(|one| one.get("resources").unwrap_or(&Value::Null)).collect(),
    };
    let amount = |one: &Value, list: &str, name: &str| -> Option<Quantity> {
        one.get(list)?.get(name)?.as_str()?.parse::<Quantity>().ok().filter(|amount| !amount.is_zero())
    };
    let both = ["cpu", "memory"];
    let asks = |one: &&Value| {
        both.iter().any(|name| ["requests", "limits"].iter().any(|list| amount(one, list, name).is_some()))
    };
    let fixed = |one: &&Value| {
        both.iter()
            .all(|name| amount(one, "limits", name).is_some_and(|limit| amount(one, "requests", name) == Some(limit)))
    };
    if !all.iter().any(asks) {
        "BestEffort"
    } else if all.iter().all(fixed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
