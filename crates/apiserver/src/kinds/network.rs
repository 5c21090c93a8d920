// SPDX-License-Identifier: Apache-2.0
//! Network policies, ingresses and endpoint slices.

use std::net::IpAddr;

use serde_json::Value;

use super::{labels, place::Place, values};
use crate::{field::Error, names, schema::validate::formats::is_cidr};

const RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

pub fn policy(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let spec = root.field("spec");
    labels::selector(&spec.field("podSelector"), &mut errors);
    for (way, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.field(way).items() {
            for port in rule.field("ports").items() {
                policy_port(&port, &mut errors);
            }
            for peer in rule.field(peers).items() {
                self::peer(&peer, &mut errors);
            }
        }
    }
    let types = spec.field("policyTypes");
    if types.len() > 2 {
        errors.push(types.invalid("may not specify more than two policyTypes"));
        return errors;
    }
    for one in types.items() {
        one.one_of(&["Ingress", "Egress"], &mut errors);
    }
    errors
}

fn policy_port(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    at.field("protocol").maybe_one_of(&["TCP", "UDP", "SCTP"], errors);
    let (port, end) = (at.field("port"), at.field("endPort"));
    if port.exists() {
        values::port_or_name(&port, errors);
    }
    if !end.exists() {
        return;
    }
    match (port.exists(), port.number()) {
        (false, _) => errors.push(end.invalid("may not be specified when `port` is not specified")),
        (true, None) => errors.push(end.invalid("may not be specified when `port` is non-numeric")),
        (true, Some(first)) => {
            if end.number().is_some_and(|end| end < first) {
                errors.push(end.invalid_as(first, "must be greater than or equal to `port`"));
            }
            end.between(1, 65535, errors);
        }
    }
}

fn peer(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let (pods, namespaces, block) = (at.field("podSelector"), at.field("namespaceSelector"), at.field("ipBlock"));
    labels::selector(&pods, errors);
    labels::selector(&namespaces, errors);
    if block.exists() {
        self::block(&block, errors);
    }
    match (pods.exists() || namespaces.exists(), block.exists()) {
        (false, false) => errors.push(at.required("must specify a peer")),
        (true, true) => errors.push(at.forbidden("may not specify both ipBlock and another peer")),
        _ => {}
    }
}

fn block(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let whole = at.field("cidr");
    if whole.is_empty() {
        errors.push(whole.required(""));
        return;
    }
    if !is_cidr(whole.text()) {
        errors.push(whole.invalid(RANGE));
        return;
    }
    for part in at.field("except").items() {
        if !is_cidr(part.text()) {
            errors.push(part.invalid(RANGE));
        } else if !is_within(part.text(), whole.text()) {
            errors.push(part.invalid("must be a strict subset of `cidr`"));
        }
    }
}

/// Whether one range lies within another and is smaller.
fn is_within(part: &str, whole: &str) -> bool {
    let read = |text: &str| -> Option<(u128, u8, bool)> {
        let (address, length) = text.split_once('/')?;
        let length = length.parse().ok()?;
        Some(match address.parse().ok()? {
            IpAddr::V4(v4) => (u128::from(u32::from(v4)) << 96, length, true),
            IpAddr::V6(v6) => (u128::from(v6), length, false),
        })
    };
    let (Some((part, narrow, four)), Some((whole, wide, also_four))) = (read(part), read(whole)) else { return false };
    let mask = u128::MAX.checked_shl(128 - u32::from(wide)).unwrap_or_default();
    four == also_four && narrow > wide && part & mask == whole & mask
}

pub fn ingress(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let spec = root.field("spec");
    if spec.field("rules").is_empty() && !spec.field("defaultBackend").exists() {
        errors.push(spec.invalid_as(spec.value().clone(), "either `defaultBackend` or `rules` must be specified"));
    }
    for rule in spec.field("rules").items() {
        let host = rule.field("host");
        if !host.is_empty() && !host.text().starts_with("*.") {
            host.named(names::subdomain, &mut errors);
        }
        let http = rule.field("http");
        for path in http.field("paths").items() {
            let kind = path.field("pathType");
            if kind.is_empty() {
                errors.push(kind.required("pathType must be specified"));
                continue;
            }
            kind.one_of(&["Exact", "ImplementationSpecific", "Prefix"], &mut errors);
            let text = path.field("path");
            if kind.text() != "ImplementationSpecific" && !text.text().starts_with('/') {
                errors.push(text.invalid("must be an absolute path"));
            }
        }
    }
    errors
}

pub fn endpoint_slice(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let kind = root.field("addressType");
    if kind.is_empty() {
        errors.push(kind.required(""));
    } else {
        kind.one_of(&["FQDN", "IPv4", "IPv6"], &mut errors);
    }
    for endpoint in root.field("endpoints").items() {
        let addresses = endpoint.field("addresses");
        if addresses.is_empty() {
            errors.push(addresses.required("must contain at least 1 address"));
        }
    }
    errors
}

pub fn endpoint_slice_update(new: &Value, old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let (root, before) = (Place::root(new), Place::root(old));
    root.field("addressType").fixed(&before.field("addressType"), &mut errors);
    errors
}
