// SPDX-License-Identifier: Apache-2.0
//! What follows from a change of a service: it keeps what it was given, and drops what its type does not have.

use serde_json::{Map, Value, json};

use super::{needs_address, needs_health_port, needs_ports};
use crate::object::{as_object, child_object};

/// Both forms of the address say the same.
pub fn prepare_create(service: &mut Value) {
    let spec = child_object(as_object(service), "spec");
    if let Some(own) = spec.get("clusterIP").filter(|own| *own != "").cloned() {
        spec.entry("clusterIPs").or_insert_with(|| json!([own]));
    }
}

/// Keeps what was handed out, and drops what another type does not have.
pub fn prepare_update(new: &mut Value, old: &Value) {
    let empty = Map::new();
    let before = old.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let spec = child_object(as_object(new), "spec");
    let kind = |spec: &Map<String, Value>| spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (now, then) = (kind(spec), kind(before));
    same_addresses(spec, before);
    let unchanged = |spec: &Map<String, Value>, field: &str| spec.get(field) == before.get(field);
    if needs_address(&now) && needs_address(&then) && !spec.contains_key("clusterIP") {
        copy(spec, before, &["clusterIP", "clusterIPs"]);
    }
    if needs_address(&now) {
        if needs_address(&then) {
            fill(spec, before, &["ipFamilies", "ipFamilyPolicy"]);
        }
        spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
        spec.entry("ipFamilyPolicy").or_insert_with(|| "SingleStack".into());
    } else if needs_address(&then) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if unchanged(spec, field) || spec.get(field) == Some(&json!("")) {
                spec.remove(field);
            }
        }
        spec.remove("internalTrafficPolicy");
    }
    if needs_ports(&now) && needs_ports(&then) {
        same_ports(spec, before);
    } else if needs_ports(&then) {
        drop_ports(spec, before);
        if unchanged(spec, "externalTrafficPolicy") {
            spec.remove("externalTrafficPolicy");
        }
    }
    if needs_health_port(spec) && needs_health_port(before) {
        fill(spec, before, &["healthCheckNodePort"]);
    } else if needs_health_port(before) && unchanged(spec, "healthCheckNodePort") {
        spec.remove("healthCheckNodePort");
    }
    if now != "LoadBalancer" && then == "LoadBalancer" {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if unchanged(spec, field) {
                spec.remove(field);
            }
        }
    }
}

fn copy(spec: &mut Map<String, Value>, before: &Map<String, Value>, fields: &[&str]) {
    for field in fields {
        if let Some(value) = before.get(*field) {
            spec.insert((*field).to_owned(), value.clone());
        }
    }
}

fn fill(spec: &mut Map<String, Value>, before: &Map<String, Value>, fields: &[&str]) {
    let absent: Vec<&str> = fields.iter().copied().filter(|field| !spec.contains_key(*field)).collect();
    copy(spec, before, &absent);
}

/// A change of one form of the address goes for the other.
fn same_addresses(spec: &mut Map<String, Value>, before: &Map<String, Value>) {
    let own = spec.get("clusterIP").cloned().filter(|own| *own != "");
    let changed = own.as_ref() != before.get("clusterIP");
    let listed = spec.get("clusterIPs") != before.get("clusterIPs");
    match own {
        None => {
            spec.remove("clusterIP");
            if !listed {
                spec.remove("clusterIPs");
            }
        }
        Some(own) if changed && !listed => drop(spec.insert("clusterIPs".into(), json!([own]))),
        Some(own) => drop(spec.entry("clusterIPs").or_insert_with(|| json!([own]))),
    }
}

/// Ports keep the node port that they had.
fn same_ports(spec: &mut Map<String, Value>, before: &Map<String, Value>) {
    let olds = before.get("ports").and_then(Value::as_array).cloned().unwrap_or_default();
    let used: Vec<Value> = list(spec).iter().filter_map(|port| port.get("nodePort").cloned()).collect();
    for port in list_mut(spec) {
        let same = |old: &&Value| old.get("port") == port.get("port") && old.get("protocol") == port.get("protocol");
        let known =
            olds.iter().find(same).and_then(|old| old.get("nodePort")).filter(|known| !used.contains(known)).cloned();
        if let Some(known) = known
            && port.get("nodePort").is_none_or(|own| own == 0)
        {
            as_object(port).insert("nodePort".into(), known);
        }
    }
}

fn drop_ports(spec: &mut Map<String, Value>, before: &Map<String, Value>) {
    let olds: Vec<Value> = list(before).iter().filter_map(|port| port.get("nodePort").cloned()).collect();
    for port in list_mut(spec) {
        if port.get("nodePort").is_some_and(|own| olds.contains(own)) {
            as_object(port).remove("nodePort");
        }
    }
}

fn list(spec: &Map<String, Value>) -> &[Value] {
    spec.get("ports").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn list_mut(spec: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten()
}
