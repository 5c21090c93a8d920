// SPDX-License-Identifier: Apache-2.0
//! What must hold for the containers of a pod.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{probes, resources, security, volumes::Volumes};
use crate::{
    field::Error,
    kinds::{place::Place, values},
    names,
};

/// What containers share: names and host ports are given once.
pub struct Shared<'a> {
    pub volumes: &'a Volumes<'a>,
    pub claims: BTreeSet<&'a str>,
    /// Names of claims in the order of the pod, for messages.
    names: BTreeSet<String>,
}

impl<'a> Shared<'a> {
    pub fn new(spec: &Place<'a, '_>, volumes: &'a Volumes<'a>) -> Self {
        let claims = spec.field("resourceClaims").items().map(|claim| claim.field("name").text()).collect();
        Self { volumes, claims, names: BTreeSet::new() }
    }
}

/// The containers that run all the time.
pub fn main(at: &Place<'_, '_>, shared: &mut Shared<'_>, errors: &mut Vec<Error>) {
    if at.is_empty() {
        errors.push(at.required(""));
        return;
    }
    for one in at.items() {
        container(&one, shared, errors);
        name_once(&one, shared, errors);
        handlers(&one, errors);
    }
    host_ports(at, errors);
}

fn name_once(one: &Place<'_, '_>, shared: &mut Shared<'_>, errors: &mut Vec<Error>) {
    let name = one.field("name");
    if !name.text().is_empty() && !shared.names.insert(name.text().to_owned()) {
        errors.push(name.duplicate());
    }
}

/// The containers that run before the others; those that restart always stay beside them.
pub fn init(at: &Place<'_, '_>, shared: &mut Shared<'_>, errors: &mut Vec<Error>) {
    for one in at.items() {
        container(&one, shared, errors);
        name_once(&one, shared, errors);
        if one.field("restartPolicy").text() == "Always" {
            handlers(&one, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if one.field(field).exists() {
                errors.push(
                    one.field(field).forbidden("may not be set for init containers without restartPolicy=Always"),
                );
            }
        }
        host_ports_of(&one, &mut BTreeSet::new(), errors);
    }
}

pub fn ephemeral(at: &Place<'_, '_>, shared: &mut Shared<'_>, errors: &mut Vec<Error>) {
    const KEPT: [&str; 16] = [
        "name",
        "image",
        "command",
        "args",
        "workingDir",
        "env",
        "envFrom",
        "volumeMounts",
        "volumeDevices",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "imagePullPolicy",
        "securityContext",
        "stdin",
        "stdinOnce",
        "tty",
    ];
    for one in at.items() {
        container(&one, shared, errors);
        name_once(&one, shared, errors);
        for (field, value) in one.map() {
            let empty = value.as_object().is_some_and(serde_json::Map::is_empty);
            if !KEPT.contains(&field) && field != "targetContainerName" && !empty {
                errors.push(one.field(field).forbidden("cannot be set for an Ephemeral Container"));
            }
        }
    }
}

/// What every container must have.
fn container(at: &Place<'_, '_>, shared: &Shared<'_>, errors: &mut Vec<Error>) {
    let name = at.field("name");
    if name.must_be(errors) {
        name.named(names::label, errors);
    }
    at.field("image").must_be(errors);
    at.field("terminationMessagePolicy").maybe_one_of(&["File", "FallbackToLogsOnError"], errors);
    ports(&at.field("ports"), errors);
    environment(&at.field("env"), errors);
    environment_sources(&at.field("envFrom"), errors);
    mounts(at, shared.volumes, errors);
    devices(at, shared.volumes, errors);
    at.field("imagePullPolicy").maybe_one_of(&["Always", "IfNotPresent", "Never"], errors);
    resources::container(&at.field("resources"), &shared.claims, errors);
    let policies = at.field("resizePolicy");
    for policy in policies.items() {
        if !["cpu", "memory"].contains(&policy.field("resourceName").text()) {
            let name = policy.field("resourceName").text();
            errors.push(Error::not_supported(policies.path(), name, &["cpu", "memory"]));
        }
        if !["NotRequired", "RestartContainer"].contains(&policy.field("restartPolicy").text()) {
            let text = policy.field("restartPolicy").text();
            errors.push(Error::not_supported(policies.path(), text, &["NotRequired", "RestartContainer"]));
        }
    }
    security::container(&at.field("securityContext"), errors);
}

/// Hooks and probes of a container that stays.
fn handlers(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let lifecycle = at.field("lifecycle");
    for hook in ["postStart", "preStop"] {
        if lifecycle.field(hook).exists() {
            probes::handler(&lifecycle.field(hook), errors);
        }
    }
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        probes::probe(&at.field(kind), kind, errors);
    }
}

fn ports(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let mut seen = BTreeSet::new();
    for port in at.items() {
        let name = port.field("name");
        if !name.is_empty() {
            let problems = values::port_name(name.text());
            if problems.is_empty() {
                if !seen.insert(name.text()) {
                    errors.push(name.duplicate());
                }
            } else {
                errors.extend(problems.into_iter().map(|why| name.invalid(why)));
            }
        }
        match port.field("containerPort").number().unwrap_or_default() {
            0 => errors.push(port.field("containerPort").required("")),
            _ => port.field("containerPort").between(1, 65535, errors),
        }
        if port.field("hostPort").number().is_some_and(|number| number != 0) {
            port.field("hostPort").between(1, 65535, errors);
        }
        let protocol = port.field("protocol");
        if protocol.text().is_empty() {
            errors.push(protocol.required(""));
        } else {
            protocol.one_of(&["SCTP", "TCP", "UDP"], errors);
        }
    }
}

/// Two containers cannot have the same port of the host.
fn host_ports(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let mut taken = BTreeSet::new();
    for one in at.items() {
        host_ports_of(&one, &mut taken, errors);
    }
}

fn host_ports_of(at: &Place<'_, '_>, taken: &mut BTreeSet<String>, errors: &mut Vec<Error>) {
    for port in at.field("ports").items() {
        let number = port.field("hostPort").number().unwrap_or_default();
        if number == 0 {
            continue;
        }
        let key = format!("{}/{}/{number}", port.field("protocol").text(), port.field("hostIP").text());
        if !taken.insert(key.clone()) {
            errors.push(Error::duplicate(port.field("hostPort").path(), key));
        }
    }
}

fn environment(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for variable in at.items() {
        let name = variable.field("name");
        if name.must_be(errors) {
            errors.extend(values::variable_name(name.text()).into_iter().map(|why| name.invalid(why)));
        }
        let from = variable.field("valueFrom");
        if from.exists() {
            variable_source(&from, !variable.field("value").is_empty(), errors);
        }
    }
}

const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

fn variable_source(at: &Place<'_, '_>, has_value: bool, errors: &mut Vec<Error>) {
    let mut sources = 0;
    let mut count = |place: &Place<'_, '_>| {
        sources += usize::from(place.exists());
        place.exists()
    };
    if count(&at.field("fieldRef")) {
        values::field_reference(&at.field("fieldRef"), &FIELDS, errors);
    }
    if count(&at.field("resourceFieldRef")) {
        values::resource_reference(&at.field("resourceFieldRef"), false, errors);
    }
    for field in ["configMapKeyRef", "secretKeyRef"] {
        let reference = at.field(field);
        if count(&reference) {
            reference.field("name").named(names::subdomain, errors);
            let key = reference.field("key");
            if key.must_be(errors) {
                errors.extend(values::config_key(key.text()).into_iter().map(|why| key.invalid(why)));
            }
        }
    }
    count(&at.field("fileKeyRef"));
    let refuse = |why: &str| at.invalid_as("", why);
    match sources {
        0 => errors.push(refuse(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        )),
        _ if has_value => errors.push(refuse("may not be specified when `value` is not empty")),
        1 => {}
        _ => errors.push(refuse("may not have more than one field specified at a time")),
    }
}

fn environment_sources(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for source in at.items() {
        let prefix = source.field("prefix");
        if !prefix.is_empty() {
            errors.extend(values::variable_name(prefix.text()).into_iter().map(|why| prefix.invalid(why)));
        }
        let given: Vec<&str> =
            ["configMapRef", "secretRef"].into_iter().filter(|field| source.field(field).exists()).collect();
        for field in &given {
            let reference = source.field(field);
            let name = reference.field("name");
            if name.must_be(errors) {
                name.named(names::subdomain, errors);
            }
        }
        match given.len() {
            0 => errors.push(at.invalid_as("", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => errors.push(at.invalid_as("", "may not have more than one field specified at a time")),
        }
    }
}

fn mounts(at: &Place<'_, '_>, volumes: &Volumes<'_>, errors: &mut Vec<Error>) {
    let devices = at.field("volumeDevices");
    let in_devices = |field: &str, text: &str| devices.items().any(|device| device.field(field).text() == text);
    let mut paths = BTreeSet::new();
    let list = at.field("volumeMounts");
    for mount in list.items() {
        let name = mount.field("name");
        name.must_be(errors);
        if !volumes.has(name.text()) {
            errors.push(name.not_found());
        }
        let path = mount.field("mountPath");
        path.must_be(errors);
        if !path.is_empty() && !paths.insert(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        if in_devices("name", name.text()) {
            errors.push(name.invalid("must not already exist in volumeDevices"));
        }
        if in_devices("devicePath", path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeDevices"));
        }
        // These are told without the index.
        let (below, expression) = (mount.field("subPath").text(), mount.field("subPathExpr"));
        let whole = list.field("subPath");
        errors.extend(values::relative(below).into_iter().map(|why| whole.invalid_as(below, why)));
        if !expression.is_empty() {
            if !below.is_empty() {
                errors.push(expression.invalid("subPathExpr and subPath are mutually exclusive"));
            }
            let text = expression.text();
            errors
                .extend(values::relative(text).into_iter().map(|why| list.field("subPathExpr").invalid_as(text, why)));
        }
        propagation(&list, &mount, at, errors);
    }
}

fn propagation(list: &Place<'_, '_>, mount: &Place<'_, '_>, container: &Place<'_, '_>, errors: &mut Vec<Error>) {
    const KINDS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
    let how = mount.field("mountPropagation");
    if how.exists() {
        let text = how.text();
        if !KINDS.contains(&text) {
            errors.push(Error::not_supported(list.field("mountPropagation").path(), text, &KINDS));
        }
        let privileged = container.field("securityContext").field("privileged").flag();
        if text == "Bidirectional" && !privileged {
            let why = "Bidirectional mount propagation is available only to privileged containers";
            errors.push(list.field("mountPropagation").forbidden(why));
        }
    }
    let recursive = mount.field("recursiveReadOnly");
    if !recursive.exists() || recursive.text() == "Disabled" {
        return;
    }
    let place = list.field("recursiveReadOnly");
    match recursive.text() {
        "Enabled" | "IfPossible" => {
            if !mount.field("readOnly").flag() {
                errors.push(place.forbidden("may only be specified when readOnly is true"));
            }
            if !["", "None"].contains(&how.text()) {
                errors.push(place.forbidden("may only be specified when mountPropagation is None or not specified"));
            }
        }
        other => errors.push(Error::not_supported(place.path(), other, &["Disabled", "Enabled", "IfPossible"])),
    }
}

fn devices(at: &Place<'_, '_>, volumes: &Volumes<'_>, errors: &mut Vec<Error>) {
    let mounts = at.field("volumeMounts");
    let in_mounts = |field: &str, text: &str| mounts.items().any(|mount| mount.field(field).text() == text);
    for device in at.field("volumeDevices").items() {
        let (name, path) = (device.field("name"), device.field("devicePath"));
        name.must_be(errors);
        if !volumes.has(name.text()) {
            errors.push(name.not_found());
        } else if !volumes.is_claim(name.text()) {
            errors.push(
                name.invalid("can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"),
            );
        }
        path.must_be(errors);
        if in_mounts("name", name.text()) {
            errors.push(name.invalid("must not already exist in volumeMounts"));
        }
        if in_mounts("mountPath", path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeMounts"));
        }
    }
}

/// The image of a pod itself; that of a template may be anything.
pub fn images(spec: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for list in ["containers", "initContainers"] {
        for one in spec.field(list).items() {
            let image = one.field("image");
            if image.text() != image.text().trim() {
                errors.push(image.invalid("must not have leading or trailing whitespace"));
            }
        }
    }
}

/// All containers of a pod, of whatever sort.
pub fn all(spec: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    lists.into_iter().filter_map(|list| spec.get(list)?.as_array()).flatten()
}
