// SPDX-License-Identifier: Apache-2.0
//! What only the strictest standard forbids.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checks::{Finding, Pod, added_capabilities, containers, flag, items, plural, quoted, seccomp, setters};
use crate::object::text;

pub fn drop_capabilities(pod: &Pod<'_>) -> Option<Finding> {
    let drops_all = |one: &Value| items(one, "/securityContext/capabilities/drop").any(|name| name == "ALL");
    let keep = pod.where_(|one| !drops_all(one));
    let mut details = Vec::new();
    if !keep.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keep)));
    }
    details.extend(added_capabilities(pod, &["NET_BIND_SERVICE"]));
    if details.is_empty() { None } else { Finding::new("unrestricted capabilities", details.join("; ")) }
}

pub fn strict_seccomp(pod: &Pod<'_>) -> Option<Finding> {
    if let Some(finding) = seccomp(pod) {
        return Some(finding);
    }
    let has = |one: &Value, pointer: &str| !text(one, pointer).is_empty();
    if has(pod.pod, "/spec/securityContext/seccompProfile/type") {
        return None;
    }
    let names = pod.where_(|one| !has(one, "/securityContext/seccompProfile/type"));
    if names.is_empty() {
        return None;
    }
    let wanted = "must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"";
    Finding::new("seccompProfile", format!("pod or {} {wanted}", containers(&names)))
}

pub fn escalation(pod: &Pod<'_>) -> Option<Finding> {
    let names = pod.where_(|one| flag(one, "/securityContext/allowPrivilegeEscalation") != Some(false));
    if names.is_empty() {
        return None;
    }
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&names));
    Finding::new("allowPrivilegeEscalation != false", detail)
}

pub fn proc_mount(pod: &Pod<'_>) -> Option<Finding> {
    let mount = |one: &'_ Value| {
        Some(text(one, "/securityContext/procMount").to_owned()).filter(|kind| !matches!(kind.as_str(), "" | "Default"))
    };
    let names = pod.where_(|one| mount(one).is_some());
    let values: BTreeSet<String> = pod.containers.iter().filter_map(|one| mount(one)).collect();
    if names.is_empty() {
        return None;
    }
    let values = quoted(values.iter().map(String::as_str));
    Finding::new("procMount", format!("{} must not set securityContext.procMount to {values}", containers(&names)))
}

pub fn volumes(pod: &Pod<'_>) -> Option<Finding> {
    const ALLOWED: [&str; 10] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "name",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let kind = |volume: &Value| {
        let mut keys = volume.as_object().into_iter().flat_map(|map| map.keys());
        keys.find(|key| !ALLOWED.contains(&key.as_str())).cloned()
    };
    let bad: Vec<(&str, String)> =
        items(pod.pod, "/spec/volumes").filter_map(|volume| Some((text(volume, "/name"), kind(volume)?))).collect();
    let kinds: BTreeSet<&str> = bad.iter().map(|(_, kind)| kind.as_str()).collect();
    if bad.is_empty() {
        return None;
    }
    let (volumes, uses) = (plural(bad.len(), "volume", "volumes"), plural(bad.len(), "uses", "use"));
    let word = plural(kinds.len(), "type", "types");
    let names = quoted(bad.iter().map(|(name, _)| *name));
    let detail = format!("{volumes} {names} {uses} restricted volume {word} {}", quoted(kinds));
    Finding::new("restricted volume types", detail)
}

pub fn run_as_non_root(pod: &Pod<'_>) -> Option<Finding> {
    const FIELD: &str = "/securityContext/runAsNonRoot";
    if pod.own_users {
        return None;
    }
    let of_pod = flag(pod.pod, &format!("/spec{FIELD}"));
    let explicit = pod.where_(|one| flag(one, FIELD) == Some(false));
    if let Some(who) = setters(of_pod == Some(false), &explicit) {
        return Finding::new("runAsNonRoot != true", format!("{who} must not set securityContext.runAsNonRoot=false"));
    }
    let silent = pod.where_(|one| flag(one, FIELD).is_none() && of_pod != Some(true));
    if silent.is_empty() {
        return None;
    }
    let detail = format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&silent));
    Finding::new("runAsNonRoot != true", detail)
}

pub fn run_as_root(pod: &Pod<'_>) -> Option<Finding> {
    const FIELD: &str = "/securityContext/runAsUser";
    if pod.own_users {
        return None;
    }
    let is_root = |one: &Value, pointer: &str| one.pointer(pointer).and_then(Value::as_i64) == Some(0);
    let names = pod.where_(|one| is_root(one, FIELD));
    let who = setters(is_root(pod.pod, &format!("/spec{FIELD}")), &names)?;
    Finding::new("runAsUser=0", format!("{who} must not set runAsUser=0"))
}
