// SPDX-License-Identifier: Apache-2.0
//! What each column shows of a built-in kind. A column that is not known here shows nothing.

use jiff::Timestamp;
use serde_json::Value;

use super::{age, pods};
use crate::{
    object::{Object, text},
    registry::Resource,
    request::selector::labels_text,
};

pub fn of(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let row =
        Row { kind: &resource.kind, object, now, pod: (&*resource.kind == "Pod").then(|| pods::summary(object, now)) };
    resource.columns.iter().map(|column| row.cell(&column.name)).collect()
}

pub(super) struct Row<'a> {
    pub(super) kind: &'a str,
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
    pod: Option<pods::Summary>,
}

impl Row<'_> {
    pub(super) fn text(&self, pointer: &str) -> &str {
        text(self.object, pointer)
    }

    /// A text, or `<none>`.
    pub(super) fn or_none(&self, pointer: &str) -> Value {
        match self.text(pointer) {
            "" => "<none>".into(),
            found => found.into(),
        }
    }

    pub(super) fn or_unset(&self, pointer: &str) -> Value {
        match self.text(pointer) {
            "" => "<unset>".into(),
            found => found.into(),
        }
    }

    pub(super) fn number(&self, pointer: &str) -> i64 {
        self.object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn flag(&self, pointer: &str) -> bool {
        self.object.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn list(&self, pointer: &str) -> &[Value] {
        self.object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn size(&self, pointer: &str) -> i64 {
        let size = match self.object.pointer(pointer) {
            Some(Value::Object(map)) => map.len(),
            Some(Value::Array(list)) => list.len(),
            _ => 0,
        };
        i64::try_from(size).unwrap_or_default()
    }

    fn age(&self, pointer: &str) -> Value {
        match self.text(pointer) {
            "" => "<unknown>".into(),
            time => age::since(time, self.now).into(),
        }
    }

    /// Names and images of the containers of a pod template.
    fn containers(&self, template: &str, field: &str) -> Value {
        let list = self.list(&format!("{template}/spec/containers"));
        let texts: Vec<&str> = list.iter().map(|one| text(one, &format!("/{field}"))).collect();
        texts.join(",").into()
    }

    pub(super) fn selector(&self, pointer: &str) -> Value {
        match self.object.pointer(pointer) {
            Some(selector) => match labels_text(selector) {
                empty if empty.is_empty() => "<none>".into(),
                text => text.into(),
            },
            None => "<none>".into(),
        }
    }

    /// A plain map of labels.
    pub(super) fn labels(&self, pointer: &str) -> Value {
        let map = self.object.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        let texts: Vec<String> =
            map.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
        if texts.is_empty() { "<none>".into() } else { texts.join(",").into() }
    }

    fn cell(&self, column: &str) -> Value {
        match column {
            "Name" => self.object.name().into(),
            "Age" => self.age("/metadata/creationTimestamp"),
            "Created At" => self.text("/metadata/creationTimestamp").into(),
            _ => match self.kind {
                "Pod" => self.pod(column),
                "Deployment" | "ReplicaSet" | "ReplicationController" | "StatefulSet" | "DaemonSet" => {
                    self.workload(column)
                }
                "Job" | "CronJob" => self.batch(column),
                "Service" | "Endpoints" | "EndpointSlice" | "Ingress" | "IngressClass" | "NetworkPolicy"
                | "IPAddress" | "ServiceCIDR" => self.network(column),
                "Node" => self.node(column),
                "PersistentVolume"
                | "PersistentVolumeClaim"
                | "StorageClass"
                | "CSIDriver"
                | "CSINode"
                | "VolumeAttachment"
                | "VolumeAttributesClass" => self.storage(column),
                "Event" => self.event(column),
                "RoleBinding" | "ClusterRoleBinding" => self.binding(column),
                _ => self.other(column),
            },
        }
    }

    fn pod(&self, column: &str) -> Value {
        let Some(pod) = &self.pod else { return Value::Null };
        match column {
            "Ready" => pod.ready.as_str().into(),
            "Status" => pod.status.as_str().into(),
            "Restarts" => pod.restarts.as_str().into(),
            "IP" => self.or_none("/status/podIP"),
            "Node" => self.or_none("/spec/nodeName"),
            "Nominated Node" => self.or_none("/status/nominatedNodeName"),
            "Readiness Gates" => match self.list("/spec/readinessGates") {
                [] => "<none>".into(),
                gates => {
                    let holds = |gate: &&Value| {
                        self.list("/status/conditions").iter().any(|one| {
                            text(one, "/type") == text(gate, "/conditionType") && text(one, "/status") == "True"
                        })
                    };
                    format!("{}/{}", gates.iter().filter(holds).count(), gates.len()).into()
                }
            },
            _ => Value::Null,
        }
    }

    fn workload(&self, column: &str) -> Value {
        let wanted = self.number("/spec/replicas");
        match (self.kind, column) {
            ("Deployment" | "StatefulSet", "Ready") => {
                format!("{}/{wanted}", self.number("/status/readyReplicas")).into()
            }
            ("Deployment", "Up-to-date") => self.number("/status/updatedReplicas").into(),
            ("Deployment", "Available") => self.number("/status/availableReplicas").into(),
            ("DaemonSet", "Desired") => self.number("/status/desiredNumberScheduled").into(),
            ("DaemonSet", "Current") => self.number("/status/currentNumberScheduled").into(),
            ("DaemonSet", "Ready") => self.number("/status/numberReady").into(),
            ("DaemonSet", "Up-to-date") => self.number("/status/updatedNumberScheduled").into(),
            ("DaemonSet", "Available") => self.number("/status/numberAvailable").into(),
            ("DaemonSet", "Node Selector") => self.labels("/spec/template/spec/nodeSelector"),
            (_, "Desired") => wanted.into(),
            (_, "Current") => self.number("/status/replicas").into(),
            (_, "Ready") => self.number("/status/readyReplicas").into(),
            (_, "Containers") => self.containers("/spec/template", "name"),
            (_, "Images") => self.containers("/spec/template", "image"),
            ("ReplicationController", "Selector") => self.labels("/spec/selector"),
            (_, "Selector") => self.selector("/spec/selector"),
            _ => Value::Null,
        }
    }

    fn batch(&self, column: &str) -> Value {
        match (self.kind, column) {
            ("Job", "Status") => self.job_status().into(),
            ("Job", "Completions") => {
                let done = self.number("/status/succeeded");
                match (self.object.pointer("/spec/completions"), self.number("/spec/parallelism")) {
                    (Some(wanted), _) => format!("{done}/{wanted}").into(),
                    (None, width) if width > 1 => format!("{done}/1 of {width}").into(),
                    _ => format!("{done}/1").into(),
                }
            }
            ("Job", "Duration") => match (self.text("/status/startTime"), self.text("/status/completionTime")) {
                ("", _) => "".into(),
                (start, "") => age::since(start, self.now).into(),
                (start, end) => match end.parse() {
                    Ok(end) => age::since(start, end).into(),
                    Err(_) => "".into(),
                },
            },
            ("Job", "Containers") => self.containers("/spec/template", "name"),
            ("Job", "Images") => self.containers("/spec/template", "image"),
            ("Job", "Selector") => self.selector("/spec/selector"),
            ("CronJob", "Schedule") => self.text("/spec/schedule").into(),
            ("CronJob", "Timezone") => self.or_none("/spec/timeZone"),
            ("CronJob", "Suspend") => if self.flag("/spec/suspend") { "True" } else { "False" }.into(),
            ("CronJob", "Active") => self.size("/status/active").into(),
            ("CronJob", "Last Schedule") => match self.text("/status/lastScheduleTime") {
                "" => "<none>".into(),
                time => age::since(time, self.now).into(),
            },
            ("CronJob", "Containers") => self.containers("/spec/jobTemplate/spec/template", "name"),
            ("CronJob", "Images") => self.containers("/spec/jobTemplate/spec/template", "image"),
            ("CronJob", "Selector") => self.selector("/spec/jobTemplate/spec/selector"),
            _ => Value::Null,
        }
    }

    fn job_status(&self) -> &'static str {
        let holds = |kind: &str| {
            let conditions = self.list("/status/conditions");
            conditions.iter().any(|one| text(one, "/type") == kind && text(one, "/status") == "True")
        };
        if holds("Complete") {
            "Complete"
        } else if holds("Failed") {
            "Failed"
        } else if self.object.is_going() {
            "Terminating"
        } else if holds("Suspended") {
            "Suspended"
        } else if holds("FailureTarget") {
            "FailureTarget"
        } else if holds("SuccessCriteriaMet") {
            "SuccessCriteriaMet"
        } else {
            "Running"
        }
    }

    fn binding(&self, column: &str) -> Value {
        let of = |kind: &str| {
            let all = self.list("/subjects").iter().filter(|one| text(one, "/kind") == kind);
            let texts: Vec<String> = all
                .map(|one| match text(one, "/namespace") {
                    "" => text(one, "/name").to_owned(),
                    namespace => format!("{namespace}/{}", text(one, "/name")),
                })
                .collect();
            Value::from(texts.join(", "))
        };
        match column {
            "Role" => format!("{}/{}", self.text("/roleRef/kind"), self.text("/roleRef/name")).into(),
            "Users" => of("User"),
            "Groups" => of("Group"),
            "ServiceAccounts" => of("ServiceAccount"),
            _ => Value::Null,
        }
    }

    fn other(&self, column: &str) -> Value {
        match (self.kind, column) {
            ("ConfigMap", "Data") => (self.size("/data") + self.size("/binaryData")).into(),
            ("Secret", "Type") => self.text("/type").into(),
            ("Secret", "Data") => self.size("/data").into(),
            ("Namespace", "Status") => self.text("/status/phase").into(),
            ("ResourceQuota", "Request" | "Limit") => self.quota(column == "Limit"),
            ("PodDisruptionBudget", "Min Available") => self.amount("/spec/minAvailable"),
            ("PodDisruptionBudget", "Max Unavailable") => self.amount("/spec/maxUnavailable"),
            ("PodDisruptionBudget", "Allowed Disruptions") => self.number("/status/disruptionsAllowed").into(),
            ("HorizontalPodAutoscaler", "Reference") => {
                format!("{}/{}", self.text("/spec/scaleTargetRef/kind"), self.text("/spec/scaleTargetRef/name")).into()
            }
            ("HorizontalPodAutoscaler", "Targets") if self.list("/spec/metrics").is_empty() => "<none>".into(),
            ("HorizontalPodAutoscaler", "MinPods") => match self.number("/spec/minReplicas") {
                0 => "<unset>".into(),
                least => least.to_string().into(),
            },
            ("HorizontalPodAutoscaler", "MaxPods") => self.number("/spec/maxReplicas").into(),
            ("HorizontalPodAutoscaler", "Replicas") => self.number("/status/currentReplicas").into(),
            ("PriorityClass", "Value") => self.number("/value").into(),
            ("PriorityClass", "Global-Default") => self.flag("/globalDefault").into(),
            ("PriorityClass", "PreemptionPolicy") => self.text("/preemptionPolicy").into(),
            ("Lease", "Holder") => self.text("/spec/holderIdentity").into(),
            ("RuntimeClass", "Handler") => self.text("/handler").into(),
            (_, "Webhooks") => self.size("/webhooks").into(),
            (_, "Validations") => self.size("/spec/validations").into(),
            (_, "Mutations") => self.size("/spec/mutations").into(),
            (_, "PolicyName") => self.text("/spec/policyName").into(),
            (_, "ParamKind") => match (self.text("/spec/paramKind/apiVersion"), self.text("/spec/paramKind/kind")) {
                (_, "") => "<unset>".into(),
                (version, kind) => format!("{version}/{kind}").into(),
            },
            (_, "ParamRef") => match self.text("/spec/paramRef/name") {
                "" if self.object.pointer("/spec/paramRef").is_none() => "<unset>".into(),
                name => format!(
                    "{}/{name}",
                    match self.text("/spec/paramRef/namespace") {
                        "" => "*",
                        namespace => namespace,
                    }
                )
                .into(),
            },
            ("ControllerRevision", "Revision") => self.number("/revision").into(),
            ("ControllerRevision", "Controller") => {
                let owner =
                    self.object.owner_references().iter().find(|one| one.get("controller") == Some(&Value::Bool(true)));
                owner.map_or_else(
                    || "<none>".into(),
                    |one| format!("{}/{}", text(one, "/kind").to_lowercase(), text(one, "/name")).into(),
                )
            }
            ("PodTemplate", "Containers") => self.containers("/template", "name"),
            ("PodTemplate", "Images") => self.containers("/template", "image"),
            ("PodTemplate", "Pod Labels") => self.labels("/template/metadata/labels"),
            ("CertificateSigningRequest", "SignerName") => self.or_none("/spec/signerName"),
            ("CertificateSigningRequest", "Requestor") => self.text("/spec/username").into(),
            ("CertificateSigningRequest", "RequestedDuration") => match self.number("/spec/expirationSeconds") {
                0 => "<none>".into(),
                seconds => age::human(seconds).into(),
            },
            ("CertificateSigningRequest", "Condition") => self.request_condition().into(),
            ("ResourceSlice", "Node") => self.or_unset("/spec/nodeName"),
            ("ResourceSlice", "Driver") => self.text("/spec/driver").into(),
            ("ResourceSlice", "Pool") => self.text("/spec/pool/name").into(),
            ("APIService", "Service") => "Local".into(),
            ("APIService", "Available") => "True".into(),
            _ => Value::Null,
        }
    }

    fn request_condition(&self) -> String {
        let mut words: Vec<&str> = self
            .list("/status/conditions")
            .iter()
            .map(|one| text(one, "/type"))
            .filter(|kind| matches!(*kind, "Approved" | "Denied" | "Failed"))
            .collect();
        if words.is_empty() {
            words.push("Pending");
        }
        if !self.text("/status/certificate").is_empty() {
            words.push("Issued");
        }
        words.join(",")
    }

    /// An integer or a percentage, or `N/A`.
    fn amount(&self, pointer: &str) -> Value {
        self.object.pointer(pointer).map_or_else(|| "N/A".into(), |value| super::plain(value).into())
    }

    /// What is used of what is granted, limits apart from the rest.
    fn quota(&self, limits: bool) -> Value {
        let granted = self.object.pointer("/spec/hard").and_then(Value::as_object).into_iter().flatten();
        let texts: Vec<String> = granted
            .filter(|(name, _)| name.starts_with("limits") == limits)
            .map(|(name, hard)| {
                let used = self.object.pointer("/status/used").and_then(|used| used.get(name)).and_then(Value::as_str);
                format!("{name}: {}/{}", used.unwrap_or("0"), hard.as_str().unwrap_or_default())
            })
            .collect();
        texts.join(", ").into()
    }
}

/// At most three texts, and how many more there are.
pub(super) fn some(all: Vec<String>, none: &str) -> Value {
    const SHOWN: usize = 3;
    match all.len() {
        0 => none.into(),
        1..=SHOWN => all.join(",").into(),
        more => format!("{} + {} more...", all.get(..SHOWN).unwrap_or_default().join(","), more - SHOWN).into(),
    }
}
