// SPDX-License-Identifier: Apache-2.0
//! What must hold for the spec of a pod, whether it stands alone or in a template.

use std::{collections::BTreeSet, net::IpAddr};

use super::{
    containers::{self, Shared},
    placing, resources, security, volumes,
};
use crate::{
    field::Error,
    kinds::{labels, place::Place, values},
    names,
};

/// `claims` are the claim templates of a StatefulSet, by name.
pub fn check(at: &Place<'_, '_>, claims: &[&str], errors: &mut Vec<Error>) {
    let list = at.field("volumes");
    let volumes = volumes::check(&list, claims, errors);
    let mut shared = Shared::new(at, &volumes);
    containers::main(&at.field("containers"), &mut shared, errors);
    containers::init(&at.field("initContainers"), &mut shared, errors);
    containers::ephemeral(&at.field("ephemeralContainers"), &mut shared, errors);
    resources::pod(&at.field("resources"), errors);
    at.field("restartPolicy").one_of(&["Always", "OnFailure", "Never"], errors);
    dns_policy(at, errors);
    labels::map(&at.field("nodeSelector"), errors);
    security::pod(at, errors);
    for secret in at.field("imagePullSecrets").items() {
        let name = secret.field("name");
        if name.is_empty() {
            // A name may be missing; the real server only warns.
            continue;
        }
        name.named(names::subdomain, errors);
    }
    placing::affinity(&at.field("affinity"), errors);
    dns(at, errors);
    for gate in at.field("readinessGates").items() {
        gate.field("conditionType").named(names::qualified_name, errors);
    }
    gates(&at.field("schedulingGates"), errors);
    placing::spreading(&at.field("topologySpreadConstraints"), errors);
    for field in ["serviceAccountName", "nodeName"] {
        let place = at.field(field);
        if !place.is_empty() {
            place.named(names::subdomain, errors);
        }
    }
    let deadline = at.field("activeDeadlineSeconds");
    deadline.between(1, i64::from(i32::MAX), errors);
    for field in ["hostname", "subdomain"] {
        let place = at.field(field);
        if !place.is_empty() {
            place.named(names::label, errors);
        }
    }
    placing::tolerations(&at.field("tolerations"), errors);
    aliases(&at.field("hostAliases"), errors);
    let class = at.field("priorityClassName");
    if !class.is_empty() {
        class.named(names::subdomain, errors);
    }
    let runtime = at.field("runtimeClassName");
    if runtime.exists() {
        runtime.named(names::subdomain, errors);
    }
    at.field("preemptionPolicy").maybe_one_of(&["Never", "PreemptLowerPriority"], errors);
    let system = at.field("os");
    if system.exists() {
        let name = system.field("name").text();
        if name.is_empty() {
            errors.push(system.field("name").required("cannot be empty"));
        } else if !["linux", "windows"].contains(&name) {
            errors.push(Error::not_supported(system.path(), name, &["linux", "windows"]));
        }
    }
}

fn dns_policy(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    at.field("dnsPolicy").one_of(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
}

fn dns(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let config = at.field("dnsConfig");
    let servers = config.field("nameservers");
    if at.field("dnsPolicy").text() == "None" {
        if !config.exists() {
            errors.push(config.required("must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(servers.required(why));
            return;
        }
    }
    if servers.len() > 3 {
        errors.push(servers.invalid("must not have more than 3 nameservers"));
    }
    for server in servers.items() {
        address(&server, errors);
    }
    for search in config.field("searches").items() {
        let text = search.text().strip_suffix('.').unwrap_or(search.text());
        if search.text() != "." {
            errors.extend(values::search_domain(text).into_iter().map(|why| search.invalid_as(text, why)));
        }
    }
    for option in config.field("options").items() {
        if option.field("name").is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
}

/// An address of the network, in the one way of writing it.
pub fn address(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    if at.text().parse::<IpAddr>().is_err() {
        errors.push(at.invalid("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
    }
}

fn gates(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let mut seen = BTreeSet::new();
    for gate in at.items() {
        let name = gate.field("name").text();
        errors.extend(names::qualified_name(name).into_iter().map(|why| gate.invalid_as(name, why)));
        if !seen.insert(name) {
            errors.push(Error::duplicate(gate.path(), name));
        }
    }
}

fn aliases(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for alias in at.items() {
        address(&alias.field("ip"), errors);
        for host in alias.field("hostnames").items() {
            host.named(names::subdomain, errors);
        }
    }
}
