// SPDX-License-Identifier: Apache-2.0
//! Pod security: labels of a namespace say which standard its pods have to meet, and whether a pod that does not is
//! refused or only warned about.

mod checks;
mod strict;

use serde_json::Value;

use super::{Operation, Review, list};
use crate::{
    call::Call,
    field::Error,
    object::{Object, text},
    status::Status,
    store::Keyspace,
};
use checks::Finding;

const PREFIX: &str = "pod-security.kubernetes.io/";
/// How many of the pods that are there are looked at when a namespace gets a stricter standard.
const MOST_PODS: usize = 3000;

/// The standards, from the most to the least permissive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// A standard as of a version of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standard {
    level: Level,
    version: String,
}

pub fn validate(call: &mut Call, review: &Review<'_>) -> Result<(), Status> {
    if review.operation == Operation::Delete || review.object().is_none() {
        return Ok(());
    }
    if review.is(call, "", "namespaces") {
        return namespace(call, review);
    }
    let Some(pointer) = template_of(call) else { return Ok(()) };
    let Some(pod) = review.object().and_then(|object| object.at(pointer)) else { return Ok(()) };
    if review.operation == Operation::Update && !matters(review, pointer, pod) {
        return Ok(());
    }
    let Some(stored) = call.server.store.get(&Keyspace::new("", "namespaces"), review.namespace) else { return Ok(()) };
    // Most namespaces ask for nothing, and reading them costs every pod.
    if !stored.labels().into_iter().any(|(key, _)| key.starts_with(PREFIX)) {
        return Ok(());
    }
    let namespace: Value = serde_json::from_slice(stored.body()).unwrap_or_default();
    if pointer.is_empty() {
        let enforced = Standard::of(&namespace, "enforce");
        let wrong = enforced.violations(pod);
        if !wrong.is_empty() {
            return Err(
                review.forbidden(call, format!("violates PodSecurity \"{}\": {}", enforced.text(), sentence(&wrong)))
            );
        }
    }
    let warned = Standard::of(&namespace, "warn");
    let wrong = warned.violations(pod);
    if !wrong.is_empty() {
        call.warnings.push(format!("would violate PodSecurity \"{}\": {}", warned.text(), sentence(&wrong)));
    }
    Ok(())
}

/// Where the pod is in an object of this kind.
fn template_of(call: &Call) -> Option<&'static str> {
    match (&*call.resource.group, &*call.resource.plural, call.target.subresource.as_deref()) {
        ("", "pods", None | Some("ephemeralcontainers")) => Some(""),
        ("", "podtemplates", None) => Some("/template"),
        ("", "replicationcontrollers", None) => Some("/spec/template"),
        ("apps", "replicasets" | "deployments" | "daemonsets" | "statefulsets", None) => Some("/spec/template"),
        ("batch", "jobs", None) => Some("/spec/template"),
        ("batch", "cronjobs", None) => Some("/spec/jobTemplate/spec/template"),
        _ => None,
    }
}

/// Whether an update changes anything that a standard looks at.
fn matters(review: &Review<'_>, pointer: &str, pod: &Value) -> bool {
    let old = review.old.and_then(|old| old.at(pointer));
    !pointer.is_empty()
        || old.is_none_or(|old| {
            ["containers", "initContainers", "ephemeralContainers"]
                .into_iter()
                .any(|kind| old.at(&format!("/spec/{kind}")) != pod.at(&format!("/spec/{kind}")))
        })
}

/// Labels must be right, and pods that would not meet a new standard are named.
fn namespace(call: &mut Call, review: &Review<'_>) -> Result<(), Status> {
    let Some(new) = review.object() else { return Ok(()) };
    let errors = wrong_labels(new);
    let before = review.old.map(wrong_labels).unwrap_or_default();
    if !errors.is_empty() && errors != before {
        return Err(Status::invalid("", "Namespace", new.name(), &errors));
    }
    let Some(old) = review.old else { return Ok(()) };
    let (now, then) = (Standard::of(new, "enforce"), Standard::of(old, "enforce"));
    if now == then || now.level == Level::Privileged || (now.version == then.version && now.level < then.level) {
        return Ok(());
    }
    let mut groups: Vec<(String, String, usize)> = Vec::new();
    for pod in list(&call.server, "", "pods", Some(new.name())).iter().take(MOST_PODS) {
        let wrong = now.violations(pod);
        if wrong.is_empty() {
            continue;
        }
        let reasons = wrong.iter().map(|one| one.reason.as_str()).collect::<Vec<_>>().join(", ");
        match groups.iter_mut().find(|(known, ..)| *known == reasons) {
            Some((.., count)) => *count += 1,
            None => groups.push((reasons, pod.name().to_owned(), 1)),
        }
    }
    if groups.is_empty() {
        return Ok(());
    }
    groups.sort_by(|a, b| a.1.cmp(&b.1));
    let (name, standard) = (new.name(), now.text());
    call.warnings
        .push(format!("existing pods in namespace {name:?} violate the new PodSecurity enforce level \"{standard}\""));
    call.warnings.extend(groups.into_iter().map(|(reasons, first, count)| match count {
        1 => format!("{first}: {reasons}"),
        2 => format!("{first} (and 1 other pod): {reasons}"),
        _ => format!("{first} (and {} other pods): {reasons}", count - 1),
    }));
    Ok(())
}

fn wrong_labels(namespace: &Value) -> Vec<Error> {
    let label = |key: &str| namespace.meta()?.get("labels")?.get(key)?.as_str();
    let mut errors = Vec::new();
    for mode in ["enforce", "audit", "warn"] {
        let (level, version) = (format!("{PREFIX}{mode}"), format!("{PREFIX}{mode}-version"));
        if let Some(value) = label(&level).filter(|value| Level::parse(value).is_none()) {
            let why = "must be one of privileged, baseline, restricted";
            errors.push(Error::invalid(format!("metadata.labels[{level}]"), value, why));
        }
        if let Some(value) = label(&version).filter(|value| *value != "latest" && minor(value).is_none()) {
            let why = "must be \"latest\" or \"v1.x\"";
            errors.push(Error::invalid(format!("metadata.labels[{version}]"), value, why));
        }
    }
    errors
}

/// The second number of `v1.x`.
fn minor(version: &str) -> Option<u32> {
    let digits = version.strip_prefix("v1.")?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if plain { digits.parse().ok() } else { None }
}

fn sentence(findings: &[Finding]) -> String {
    let texts = findings.iter().map(|one| format!("{} ({})", one.reason, one.detail));
    texts.collect::<Vec<_>>().join(", ")
}

// === impl Level ===

impl Level {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "privileged" => Some(Self::Privileged),
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }
}

// === impl Standard ===

impl Standard {
    /// What a namespace asks for. What is not understood is read as the strictest standard.
    fn of(namespace: &Value, mode: &str) -> Self {
        let label = |key: String| namespace.meta()?.get("labels")?.get(&key)?.as_str();
        let level = match label(format!("{PREFIX}{mode}")) {
            None => Level::Privileged,
            Some(text) => Level::parse(text).unwrap_or(Level::Restricted),
        };
        let version = label(format!("{PREFIX}{mode}-version")).unwrap_or("latest").to_owned();
        Self { level, version }
    }

    fn text(&self) -> String {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        format!("{level}:{}", self.version)
    }

    fn violations(&self, pod: &Value) -> Vec<Finding> {
        // A windows pod has no security context in the sense of the strictest standard.
        let windows = text(pod, "/spec/os/name") == "windows";
        checks::run(pod, self.level, minor(&self.version).unwrap_or(u32::MAX), windows)
    }
}
