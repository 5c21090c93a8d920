// SPDX-License-Identifier: Apache-2.0
//! Small values that many kinds have: keys, ports, paths, names of resources.

use super::place::Place;
use crate::{field::Error, names};

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const VARIABLE: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
const SEARCH: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";

/// The key of a ConfigMap or a Secret.
pub fn config_key(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if key.len() > 253 {
        problems.push("must be no more than 253 bytes".to_owned());
    }
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')) {
        problems.push(CONFIG_KEY.to_owned());
    }
    match key {
        "." | ".." => problems.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

pub fn variable_name(name: &str) -> Vec<String> {
    let fits = !name.is_empty() && name.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=');
    if fits { Vec::new() } else { vec![VARIABLE.to_owned()] }
}

pub fn header_name(name: &str) -> Vec<String> {
    let fits = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if fits { Vec::new() } else { vec![HEADER.to_owned()] }
}

/// A domain that DNS searches; it may have underscores.
pub fn search_domain(name: &str) -> Vec<String> {
    let part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        part.bytes().all(|b| edge(b) || matches!(b, b'-' | b'_'))
            && part.bytes().next().is_some_and(edge)
            && part.bytes().last().is_some_and(edge)
    };
    if name.split('.').all(part) { Vec::new() } else { vec![SEARCH.to_owned()] }
}

/// The name of a port of a container.
pub fn port_name(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 15 {
        problems.push("must be no more than 15 bytes");
    }
    if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        problems.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push("must not begin or end with a hyphen");
    }
    problems.into_iter().map(str::to_owned).collect()
}

/// A number of a port, or the name of one.
pub fn port_or_name(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    if at.value().is_string() {
        errors.extend(port_name(at.text()).into_iter().map(|why| at.invalid(why)));
    } else {
        let number = at.number().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            errors.push(at.invalid_as(number, "must be between 1 and 65535, inclusive"));
        }
    }
}

/// What is wrong with a path that has to stay below another.
pub fn relative(path: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if path.starts_with('/') {
        problems.push("must be a relative path".to_owned());
    }
    if path.split('/').any(|part| part == "..") {
        problems.push("must not contain '..'".to_owned());
    }
    problems
}

/// A reference to a field of the pod.
pub fn field_reference(at: &Place<'_, '_>, known: &[&str], errors: &mut Vec<Error>) {
    const CONVERTED: [&str; 11] = [
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.serviceAccountName",
        "status.phase",
        "status.hostIP",
        "status.podIP",
    ];
    let (version, path) = (at.field("apiVersion"), at.field("fieldPath"));
    if version.is_empty() {
        errors.push(version.required(""));
        return;
    }
    if !path.must_be(errors) {
        return;
    }
    let text = path.text();
    if let Some((name, key)) = text.strip_suffix(']').and_then(|text| text.split_once("['"))
        && let Some(key) = key.strip_suffix('\'')
    {
        let problems = match name {
            "metadata.annotations" => names::qualified_name(&key.to_lowercase()),
            "metadata.labels" => names::qualified_name(key),
            _ => {
                errors.push(path.invalid("does not support subscript"));
                return;
            }
        };
        errors.extend(problems.into_iter().map(|why| path.invalid_as(key, why)));
        return;
    }
    if !CONVERTED.contains(&text) && !["status.hostIPs", "status.podIPs"].contains(&text) {
        errors.push(path.invalid(format!("error converting fieldPath: field label not supported: {text}")));
    } else if !known.contains(&text) {
        errors.push(path.not_supported(known));
    }
}

/// A reference to a request or a limit of a container.
pub fn resource_reference(at: &Place<'_, '_>, volume: bool, errors: &mut Vec<Error>) {
    const KNOWN: [&str; 6] = [
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    if volume && at.field("containerName").is_empty() {
        errors.push(at.field("containerName").required(""));
        return;
    }
    let resource = at.field("resource");
    let text = resource.text();
    if text.is_empty() {
        errors.push(resource.required(""));
    } else if !KNOWN.contains(&text)
        && !text.starts_with("limits.hugepages-")
        && !text.starts_with("requests.hugepages-")
    {
        errors.push(resource.not_supported(&KNOWN));
    }
}

/// The resources of containers that Kubernetes itself knows.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const INTEGERS: [&str; 10] = [
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
    "ephemeral-containers",
];

/// Without a prefix, or with Kubernetes' own.
pub fn is_native_resource(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether only whole amounts make sense.
pub fn is_integer_resource(name: &str) -> bool {
    INTEGERS.contains(&name) || !is_native_resource(name)
}

/// The name of a resource of a container. The name is told by the place of its amount.
pub fn container_resource(at: &Place<'_, '_>, name: &str, errors: &mut Vec<Error>) {
    resource_name(at, name, errors);
    if !name.contains('/') && !STANDARD.contains(&name) && !name.starts_with("hugepages-") {
        errors.push(at.invalid_as(name, "must be a standard resource for containers"));
    }
    if name.contains('/') && !is_native_resource(name) && !is_extended(name) {
        errors.push(at.invalid_as(name, "doesn't follow extended resource name standard"));
    }
}

fn is_extended(name: &str) -> bool {
    !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// The name of any resource.
pub fn resource_name(at: &Place<'_, '_>, name: &str, errors: &mut Vec<Error>) {
    let problems = names::qualified_name(name);
    if !problems.is_empty() {
        errors.extend(problems.into_iter().map(|why| at.invalid_as(name, why)));
        return;
    }
    if !name.contains('/') && name != "storage" && !is_quota_resource(name) {
        errors.push(at.invalid_as(name, "must be a standard resource type or fully qualified"));
    }
}

const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// The number before a percent sign.
fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// A number that is not negative, or a share of a whole.
pub fn int_or_percent(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    if at.value().is_string() {
        if percent(at.text()).is_none() {
            errors.push(at.invalid(PERCENT));
        }
    } else {
        at.not_negative(errors);
    }
}

/// Zero, or no share at all.
pub fn is_none(at: &Place<'_, '_>) -> bool {
    match at.number() {
        Some(number) => number == 0,
        None => !at.value().is_string() || percent(at.text()) == Some(0),
    }
}

pub fn at_most_all(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    if percent(at.text()).is_some_and(|share| share > 100) {
        errors.push(at.invalid("must not be greater than 100%"));
    }
}

/// A name below a domain, like `acme.io/foo`.
pub fn prefixed_path(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let text = at.text();
    if text.is_empty() {
        errors.push(at.required(""));
        return;
    }
    let Some((domain, path)) = text.split_once('/').filter(|(domain, path)| !domain.is_empty() && !path.is_empty())
    else {
        errors.push(at.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")"));
        return;
    };
    errors.extend(names::subdomain(domain).into_iter().map(|why| at.invalid_as(domain, why)));
    let fits = path.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/%".contains(&b));
    if !fits {
        errors.push(at.invalid_as(path, "Invalid path"));
    }
}

/// Whether a quota can count the resource.
pub fn is_quota_resource(name: &str) -> bool {
    const KNOWN: [&str; 19] = [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
    ];
    KNOWN.contains(&name) || name.starts_with("hugepages-") || name.starts_with("requests.hugepages-")
}
