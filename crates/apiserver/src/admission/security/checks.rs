// SPDX-License-Identifier: Apache-2.0
//! What the standards forbid, check by check, in the order and the words of the real server.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Level,
    strict::{drop_capabilities, escalation, proc_mount, run_as_non_root, run_as_root, strict_seccomp, volumes},
};
use crate::object::{Object, text};

/// What is wrong, in short and in detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub reason: String,
    pub detail: String,
}

type Check = fn(&Pod<'_>) -> Option<Finding>;

/// Checks of both standards.
const SHARED: [(Check, u32); 8] = [
    (app_armor, 0),
    (host_namespaces, 0),
    (host_ports, 0),
    (probe_hosts, 34),
    (privileged, 0),
    (se_linux, 0),
    (sysctls, 0),
    (host_process, 0),
];

/// The pod and its containers, those that start first before the others.
pub struct Pod<'a> {
    pub pod: &'a Value,
    pub containers: Vec<&'a Value>,
    /// Users inside are not users outside.
    pub own_users: bool,
}

/// Runs the checks of a level, as of a minor version.
pub fn run(pod: &Value, level: Level, version: u32, windows: bool) -> Vec<Finding> {
    let kinds = ["initContainers", "containers", "ephemeralContainers"];
    let containers = kinds.into_iter().filter_map(|kind| pod.pointer(&format!("/spec/{kind}"))?.as_array()).flatten();
    let own_users = pod.pointer("/spec/hostUsers").and_then(Value::as_bool) == Some(false);
    let pod = Pod { pod, containers: containers.collect(), own_users };
    let shared = |range: std::ops::Range<usize>| {
        let some = SHARED.get(range).unwrap_or_default();
        some.iter().filter(|(_, since)| *since <= version).map(|(check, _)| *check).collect::<Vec<Check>>()
    };
    let checks: Vec<Check> = match level {
        Level::Privileged => return Vec::new(),
        // The real server has them in the order of their names.
        Level::Baseline => [
            shared(0..1),
            vec![capabilities as Check],
            shared(1..2),
            vec![host_paths],
            shared(2..6),
            vec![seccomp],
            shared(6..8),
        ]
        .concat(),
        Level::Restricted if windows => [shared(0..8), vec![volumes, run_as_non_root]].concat(),
        Level::Restricted => [
            shared(0..8),
            vec![
                escalation as Check,
                drop_capabilities,
                proc_mount,
                volumes,
                run_as_non_root,
                run_as_root,
                strict_seccomp,
            ],
        ]
        .concat(),
    };
    checks.into_iter().filter_map(|check| check(&pod)).collect()
}

impl Finding {
    pub fn new(reason: impl Into<String>, detail: impl Into<String>) -> Option<Self> {
        Some(Self { reason: reason.into(), detail: detail.into() })
    }
}

pub fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

pub fn plural<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// `container "a"` or `containers "a", "b"`.
pub fn containers(names: &[&str]) -> String {
    format!("{} {}", plural(names.len(), "container", "containers"), quoted(names.iter().copied()))
}

/// `pod and container "a"`.
pub fn setters(pod: bool, names: &[&str]) -> Option<String> {
    match (pod, names) {
        (false, []) => None,
        (true, []) => Some("pod".to_owned()),
        (false, names) => Some(containers(names)),
        (true, names) => Some(format!("pod and {}", containers(names))),
    }
}

impl<'a> Pod<'a> {
    pub fn flag(&self, pointer: &str) -> bool {
        flag(self.pod, pointer) == Some(true)
    }

    /// The names of containers for which this holds.
    pub fn where_(&self, test: impl Fn(&'a Value) -> bool) -> Vec<&'a str> {
        self.containers.iter().filter(|one| test(one)).map(|one| text(one, "/name")).collect()
    }

    /// Values that the pod or its containers set although they may not, and who does.
    pub fn set(&self, field: &str, is_bad: impl Fn(&str) -> bool) -> Option<(String, BTreeSet<&'a str>)> {
        let pointer = format!("/securityContext/{field}");
        let bad = |value: &'a Value, pointer: &str| {
            Some(text(value, pointer)).filter(|value| !value.is_empty() && is_bad(value))
        };
        let of_pod = bad(self.pod, &format!("/spec{pointer}"));
        let names = self.where_(|one| bad(one, &pointer).is_some());
        let values = self.containers.iter().filter_map(|one| bad(one, &pointer)).chain(of_pod).collect();
        Some((setters(of_pod.is_some(), &names)?, values))
    }
}

pub fn flag(value: &Value, pointer: &str) -> Option<bool> {
    value.pointer(pointer).and_then(Value::as_bool)
}

pub fn items<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn app_armor(pod: &Pod<'_>) -> Option<Finding> {
    const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
    let set = pod.set("appArmorProfile/type", |kind| !matches!(kind, "RuntimeDefault" | "Localhost"));
    let annotations = pod.pod.meta().and_then(|meta| meta.get("annotations")).and_then(Value::as_object);
    let allowed = |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotated: Vec<String> = annotations
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(key, value)| key.starts_with(ANNOTATION) && !allowed(value))
        .map(|(key, value)| format!("{key}=\"{value}\""))
        .collect();
    let (who, values) = set.unwrap_or_default();
    let more = match annotated.len() {
        0 => None,
        count => Some(plural(count, "annotation", "annotations").to_owned()),
    };
    let who: Vec<String> = [Some(who).filter(|who| !who.is_empty()), more].into_iter().flatten().collect();
    let values: Vec<&str> = values.into_iter().chain(annotated.iter().map(String::as_str)).collect();
    if values.is_empty() {
        return None;
    }
    let reason = plural(values.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles");
    Finding::new(reason, format!("{} must not set AppArmor profile type to {}", who.join(" and "), quoted(values)))
}

fn capabilities(pod: &Pod<'_>) -> Option<Finding> {
    const ALLOWED: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    Finding::new("non-default capabilities", added_capabilities(pod, &ALLOWED)?)
}

pub fn added_capabilities(pod: &Pod<'_>, allowed: &[&str]) -> Option<String> {
    let added = |one: &'_ Value| -> Vec<String> {
        let all = items(one, "/securityContext/capabilities/add").filter_map(Value::as_str);
        all.filter(|name| !allowed.contains(name)).map(str::to_owned).collect()
    };
    let names = pod.where_(|one| !added(one).is_empty());
    let values: BTreeSet<String> = pod.containers.iter().flat_map(|one| added(one)).collect();
    if names.is_empty() {
        return None;
    }
    let values = quoted(values.iter().map(String::as_str));
    Some(format!("{} must not include {values} in securityContext.capabilities.add", containers(&names)))
}

fn host_namespaces(pod: &Pod<'_>) -> Option<Finding> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let set: Vec<String> =
        fields.filter(|field| pod.flag(&format!("/spec/{field}"))).map(|field| format!("{field}=true")).collect();
    if set.is_empty() { None } else { Finding::new("host namespaces", set.join(", ")) }
}

fn host_paths(pod: &Pod<'_>) -> Option<Finding> {
    let volumes = items(pod.pod, "/spec/volumes").filter(|volume| volume.get("hostPath").is_some());
    let names: Vec<&str> = volumes.map(|volume| text(volume, "/name")).collect();
    if names.is_empty() {
        return None;
    }
    Finding::new("hostPath volumes", format!("{} {}", plural(names.len(), "volume", "volumes"), quoted(names)))
}

fn host_ports(pod: &Pod<'_>) -> Option<Finding> {
    let ports = |one: &Value| -> Vec<i64> {
        items(one, "/ports").filter_map(|port| port.get("hostPort")?.as_i64()).filter(|port| *port != 0).collect()
    };
    let names = pod.where_(|one| !ports(one).is_empty());
    let all: BTreeSet<String> = pod.containers.iter().flat_map(|one| ports(one)).map(|port| port.to_string()).collect();
    if names.is_empty() {
        return None;
    }
    let uses = plural(names.len(), "uses", "use");
    let word = plural(all.len(), "hostPort", "hostPorts");
    let all = all.into_iter().collect::<Vec<_>>().join(", ");
    Finding::new("hostPort", format!("{} {uses} {word} {all}", containers(&names)))
}

fn probe_hosts(pod: &Pod<'_>) -> Option<Finding> {
    const PLACES: [&str; 5] =
        ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle/postStart", "lifecycle/preStop"];
    let hosts = |one: &Value| -> Vec<String> {
        let ways =
            PLACES.into_iter().flat_map(|place| ["httpGet", "tcpSocket"].map(|way| format!("/{place}/{way}/host")));
        let named = ways.map(|pointer| text(one, &pointer).to_owned());
        named.filter(|host| !matches!(host.as_str(), "" | "127.0.0.1" | "::1")).collect()
    };
    let names = pod.where_(|one| !hosts(one).is_empty());
    let all: BTreeSet<String> = pod.containers.iter().flat_map(|one| hosts(one)).collect();
    if names.is_empty() {
        return None;
    }
    let uses = plural(names.len(), "uses", "use");
    let word = plural(all.len(), "host", "hosts");
    let all = quoted(all.iter().map(String::as_str));
    Finding::new("probe or lifecycle host", format!("{} {uses} probe or lifecycle {word} {all}", containers(&names)))
}

fn privileged(pod: &Pod<'_>) -> Option<Finding> {
    let names = pod.where_(|one| flag(one, "/securityContext/privileged") == Some(true));
    if names.is_empty() {
        return None;
    }
    Finding::new("privileged", format!("{} must not set securityContext.privileged=true", containers(&names)))
}

fn se_linux(pod: &Pod<'_>) -> Option<Finding> {
    const TYPES: [&str; 4] = ["container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
    const FIELD: &str = "/securityContext/seLinuxOptions";
    let bad_type = |one: &Value, at: &str| {
        Some(text(one, &format!("{at}/type")).to_owned())
            .filter(|kind| !kind.is_empty() && !TYPES.contains(&kind.as_str()))
    };
    let has = |one: &Value, at: &str, field: &str| !text(one, &format!("{at}/{field}")).is_empty();
    let bad = |one: &Value, at: &str| bad_type(one, at).is_some() || has(one, at, "user") || has(one, at, "role");
    let of_pod = format!("/spec{FIELD}");
    let names = pod.where_(|one| bad(one, FIELD));
    let who = setters(bad(pod.pod, &of_pod), &names)?;
    let all = || pod.containers.iter().map(|one| (*one, FIELD)).chain([(pod.pod, of_pod.as_str())]);
    let types: BTreeSet<String> = all().filter_map(|(one, at)| bad_type(one, at)).collect();
    let mut details = Vec::new();
    if !types.is_empty() {
        details.push(format!("{} {}", plural(types.len(), "type", "types"), quoted(types.iter().map(String::as_str))));
    }
    for field in ["user", "role"] {
        if all().any(|(one, at)| has(one, at, field)) {
            details.push(format!("{field} may not be set"));
        }
    }
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {}", details.join("; "));
    Finding::new("seLinuxOptions", detail)
}

pub fn seccomp(pod: &Pod<'_>) -> Option<Finding> {
    let (who, values) = pod.set("seccompProfile/type", |kind| !matches!(kind, "RuntimeDefault" | "Localhost"))?;
    let detail = format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(values));
    Finding::new("seccompProfile", detail)
}

fn sysctls(pod: &Pod<'_>) -> Option<Finding> {
    const ALLOWED: [&str; 12] = [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    ];
    let names = items(pod.pod, "/spec/securityContext/sysctls").map(|one| text(one, "/name"));
    let bad: Vec<&str> = names.filter(|name| !ALLOWED.contains(name)).collect();
    if bad.is_empty() { None } else { Finding::new("forbidden sysctls", bad.join(", ")) }
}

fn host_process(pod: &Pod<'_>) -> Option<Finding> {
    const FIELD: &str = "/securityContext/windowsOptions/hostProcess";
    let names = pod.where_(|one| flag(one, FIELD) == Some(true));
    let who = setters(pod.flag(&format!("/spec{FIELD}")), &names)?;
    Finding::new("hostProcess", format!("{who} must not set securityContext.windowsOptions.hostProcess=true"))
}
