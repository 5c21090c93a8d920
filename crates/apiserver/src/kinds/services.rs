// SPDX-License-Identifier: Apache-2.0
//! Services: what must hold for them. What follows from a change of type is in `change`.

pub mod change;

use std::{collections::BTreeSet, net::IpAddr};

use serde_json::{Map, Value};

use super::{labels, place::Place, pod::spec::address, values};
use crate::{
    field::{Error, Problem},
    names,
    schema::validate::formats::is_cidr,
};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub fn needs_address(kind: &str) -> bool {
    matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer")
}

pub fn needs_ports(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

/// Whether a load balancer has to be told which nodes have pods.
pub fn needs_health_port(spec: &Map<String, Value>) -> bool {
    let text = |field: &str| spec.get(field).and_then(Value::as_str).unwrap_or_default();
    text("type") == "LoadBalancer" && text("externalTrafficPolicy") == "Local"
}

pub fn check(service: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(service);
    let spec = root.field("spec");
    let kind = spec.field("type").text();
    let headless = spec.field("clusterIP").text() == "None";
    ports(&spec, kind, headless, &mut errors);
    labels::map(&spec.field("selector"), &mut errors);
    affinity(&spec, &mut errors);
    spec.field("type").one_of(&TYPES, &mut errors);
    addresses(&spec, kind, headless, &mut errors);
    for one in spec.field("externalIPs").items() {
        external_address(&one, &mut errors);
    }
    if kind == "ExternalName" {
        let name = spec.field("externalName");
        let text = name.text().strip_suffix('.').unwrap_or(name.text());
        if name.must_be(&mut errors) {
            errors.extend(names::subdomain(text).into_iter().map(|why| name.invalid(why)));
        }
    }
    balancer(&spec, kind, &mut errors);
    policies(&spec, kind, &mut errors);
    errors
}

fn ports(spec: &Place<'_, '_>, kind: &str, headless: bool, errors: &mut Vec<Error>) {
    let list = spec.field("ports");
    if list.is_empty() && !headless && kind != "ExternalName" {
        errors.push(list.required(""));
    }
    let mut seen = BTreeSet::new();
    let (mut known, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for port in list.items() {
        let name = port.field("name");
        if name.is_empty() {
            if list.len() > 1 {
                errors.push(name.required(""));
            }
        } else {
            name.named(names::label, errors);
            if !seen.insert(name.text()) {
                errors.push(name.duplicate());
            }
        }
        number(&port.field("port"), errors);
        let protocol = port.field("protocol");
        protocol.one_of(&["SCTP", "TCP", "UDP"], errors);
        values::port_or_name(&port.field("targetPort"), errors);
        let application = port.field("appProtocol");
        if application.exists() {
            application.named(names::qualified_name, errors);
        }
        let own = port.field("nodePort").number().unwrap_or_default();
        if own != 0 && kind == "ClusterIP" {
            errors.push(port.field("nodePort").forbidden("may not be used when `type` is 'ClusterIP'"));
        }
        if own != 0 && !taken.insert((protocol.text(), own)) {
            errors.push(port.field("nodePort").duplicate());
        }
        let key = (protocol.text(), port.field("port").number().unwrap_or_default());
        if !known.insert(key) {
            let (protocol, number) = key;
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.push(Error { problem: Problem::Duplicate, ..port.refused(&shown) });
        }
    }
}

fn number(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let number = at.number().unwrap_or_default();
    if !(1..=65535).contains(&number) {
        errors.push(at.invalid_as(number, "must be between 1 and 65535, inclusive"));
    }
}

fn affinity(spec: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let how = spec.field("sessionAffinity");
    how.one_of(&["ClientIP", "None"], errors);
    let config = spec.field("sessionAffinityConfig");
    if how.text() == "ClientIP" {
        let client = config.field("clientIP");
        let seconds = client.field("timeoutSeconds");
        match seconds.number() {
            Some(1..=86400) => {}
            Some(_) => errors.push(seconds.invalid("must be greater than 0 and less than 86400")),
            None => errors.push(client.field("timeoutSeconds").required("when session affinity type is ClientIP")),
        }
    } else if how.text() == "None" && config.exists() {
        errors.push(config.forbidden("must not be set when session affinity is None"));
    }
}

fn addresses(spec: &Place<'_, '_>, kind: &str, headless: bool, errors: &mut Vec<Error>) {
    let (list, families, policy) = (spec.field("clusterIPs"), spec.field("ipFamilies"), spec.field("ipFamilyPolicy"));
    if kind == "ExternalName" {
        for field in [list, families, policy] {
            if !field.is_empty() {
                errors.push(field.forbidden("may not be set for ExternalName services"));
            }
        }
        return;
    }
    policy.maybe_one_of(&["PreferDualStack", "RequireDualStack", "SingleStack"], errors);
    let mut seen = BTreeSet::new();
    for family in families.items() {
        if !["IPv4", "IPv6"].contains(&family.text()) {
            errors.push(family.not_supported(&["IPv4", "IPv6"]));
        }
        if !seen.insert(family.text()) {
            errors.push(family.duplicate());
        }
    }
    for one in list.items() {
        match one.text() {
            "None" if list.len() > 1 => {
                errors.push(one.invalid("may not be set to 'None' when more than one is given"))
            }
            "None" if kind != "ClusterIP" => {
                errors.push(one.invalid(format!("may not be set to 'None' for {kind} services")));
            }
            "None" => {}
            _ => address(&one, errors),
        }
    }
    let first = list.items().next();
    let own = spec.field("clusterIP");
    match first {
        Some(first) if first.text() != own.text() => {
            errors.push(list.invalid("first value must match `clusterIP`"));
        }
        None if !own.is_empty() => errors.push(list.required("")),
        _ => {}
    }
    let selectorless = headless && spec.field("selector").is_empty();
    if !selectorless && errors.is_empty() {
        if let Some(other) = families.items().find(|family| family.text() == "IPv6") {
            errors.push(other.invalid("not configured on this cluster"));
        } else if policy.text() == "RequireDualStack" {
            errors.push(policy.invalid("this cluster is not configured for dual-stack services"));
        }
    }
}

fn external_address(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let Ok(found) = at.text().parse::<IpAddr>() else {
        address(at, errors);
        return;
    };
    let link_local = match found {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    if found.is_unspecified() {
        errors.push(at.invalid(format!("may not be unspecified ({})", at.text())));
    }
    if found.is_loopback() {
        errors.push(at.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    if link_local {
        errors.push(at.invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
    }
    if found.is_multicast() {
        errors.push(at.invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
    }
}

fn balancer(spec: &Place<'_, '_>, kind: &str, errors: &mut Vec<Error>) {
    const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
    let ranges = spec.field("loadBalancerSourceRanges");
    // The real server tells this path with a capital letter.
    let shown = spec.field("LoadBalancerSourceRanges").path();
    if ranges.exists() {
        if kind != "LoadBalancer" {
            errors.push(Error::forbidden(shown.clone(), ONLY));
        }
        for (index, range) in ranges.items().enumerate() {
            if !is_cidr(range.text().trim()) {
                let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
                errors.push(Error::invalid(format!("{shown}[{index}]"), range.text(), why));
            }
        }
    }
    if kind != "LoadBalancer" {
        if spec.field("allocateLoadBalancerNodePorts").exists() {
            errors.push(spec.field("allocateLoadBalancerNodePorts").forbidden(ONLY));
        }
        if spec.field("loadBalancerClass").exists() {
            errors.push(spec.field("loadBalancerClass").forbidden(ONLY));
        }
    }
}

fn policies(spec: &Place<'_, '_>, kind: &str, errors: &mut Vec<Error>) {
    let outside = spec.field("externalTrafficPolicy");
    let reachable = needs_ports(kind) || !spec.field("externalIPs").is_empty();
    if outside.exists() {
        if reachable {
            outside.one_of(&["Cluster", "Local"], errors);
        } else {
            errors.push(outside.invalid("may only be set for externally-accessible services"));
        }
    } else if needs_ports(kind) {
        errors.push(outside.required(""));
    }
    let health = spec.field("healthCheckNodePort");
    if health.number().is_some_and(|port| port != 0) && !spec.fields().is_some_and(needs_health_port) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(health.invalid(why));
    }
    spec.field("internalTrafficPolicy").maybe_one_of(&["Cluster", "Local"], errors);
    spec.field("trafficDistribution").maybe_one_of(&["PreferClose", "PreferSameZone", "PreferSameNode"], errors);
}

pub fn check_update(new: &Value, old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let (root, before) = (Place::root(new), Place::root(old));
    let (spec, old_spec) = (root.field("spec"), before.field("spec"));
    let stays = needs_address(spec.field("type").text()) && needs_address(old_spec.field("type").text());
    let (list, known) = (spec.field("clusterIPs"), old_spec.field("clusterIPs"));
    if stays
        && !known.is_empty()
        && list.items().next().map(|one| one.text()) != known.items().next().map(|one| one.text())
    {
        let path = format!("{}[0]", list.path());
        errors.push(Error::invalid(path, list.value().clone(), "may not change once set"));
    }
    let class = spec.field("loadBalancerClass");
    let balanced = |spec: &Place<'_, '_>| spec.field("type").text() == "LoadBalancer";
    if balanced(&spec) && balanced(&old_spec) && class.value() != old_spec.field("loadBalancerClass").value() {
        errors.push(class.invalid_as(class.value().clone(), "may not change once set"));
    }
    errors
}

/// What is allowed but does nothing.
pub fn warn(service: &Value) -> Vec<String> {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let text = |field: &str| spec.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut warnings = Vec::new();
    if !text("externalName").is_empty() && text("type") != "ExternalName" {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    warnings
}
