// SPDX-License-Identifier: Apache-2.0
//! One object as a person sees it: what state it is in, and what it waits for.

use std::fmt;

use jiff::Timestamp;
use kube::core::DynamicObject;
use serde_json::Value;

/// Conditions that speak for a whole object, the most telling first.
const SPEAKERS: [&str; 4] = ["Ready", "Available", "PodScheduled", "Established"];

/// Sorted as people look at it: our kinds first, as the follower ranks them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub rank: usize,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub state: String,
    pub waits_for: Option<String>,
}

/// An event of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    pub id: String,
    pub at: Timestamp,
    pub about: String,
    pub reason: String,
    pub note: String,
    pub warning: bool,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

// === impl Item ===

impl Item {
    pub fn of(kind: &str, object: &DynamicObject) -> Self {
        let data = &object.data;
        if object.metadata.deletion_timestamp.is_some() {
            let finalizers = object.metadata.finalizers.as_deref().unwrap_or_default();
            let waits_for = (!finalizers.is_empty()).then(|| format!("its end: {} to let go", finalizers.join(", ")));
            return Self { state: "Deleting".to_owned(), waits_for };
        }
        match kind {
            "Pod" => Self::pod(data),
            "Job" => Self::job(data),
            _ => Self::by_conditions(data),
        }
    }

    fn pod(data: &Value) -> Self {
        let phase = text(data, "/status/phase").unwrap_or("Pending");
        let statuses = data.pointer("/status/containerStatuses").and_then(Value::as_array);
        let waiting = statuses.into_iter().flatten().find_map(|one| said(one.pointer("/state/waiting")?));
        let unplaced = match condition(data, "PodScheduled") {
            Some(scheduled) => Some(scheduled).filter(|one| !is_true(one)).and_then(said),
            None => text(data, "/spec/nodeName").is_none().then(|| "no node is chosen yet".to_owned()),
        };
        // A pod that is over waits for nothing, whatever its conditions say.
        let open = matches!(phase, "Pending" | "Running");
        Self { state: phase.to_owned(), waits_for: if open { unplaced.or(waiting) } else { None } }
    }

    fn job(data: &Value) -> Self {
        let ended = |name: &str| condition(data, name).filter(|one| is_true(one));
        let (state, waits_for) = match (ended("Failed"), ended("Complete"), ended("Suspended")) {
            (Some(failed), ..) => ("Failed", said(failed)),
            (_, Some(_), _) => ("Complete", None),
            (_, _, Some(_)) => ("Suspended", None),
            _ if data.pointer("/status/active").and_then(Value::as_u64).unwrap_or_default() > 0 => ("Running", None),
            _ => ("Waiting", None),
        };
        Self { state: state.to_owned(), waits_for }
    }

    fn by_conditions(data: &Value) -> Self {
        let speaker = SPEAKERS.iter().find_map(|name| condition(data, name));
        let phase = text(data, "/status/phase").filter(|phase| !phase.is_empty());
        match speaker {
            Some(one) if is_true(one) => Self { state: phase.unwrap_or("Ready").to_owned(), waits_for: None },
            Some(one) => Self { state: phase.unwrap_or("Waiting").to_owned(), waits_for: said(one) },
            None => Self { state: phase.unwrap_or("Stored").to_owned(), waits_for: None },
        }
    }
}

// === impl Happening ===

impl Happening {
    /// From an `events.k8s.io` event, which also holds what older programs wrote.
    pub fn of(object: &DynamicObject) -> Option<Self> {
        let data = &object.data;
        let times = ["/series/lastObservedTime", "/deprecatedLastTimestamp", "/eventTime", "/deprecatedFirstTimestamp"];
        let told = times.iter().find_map(|pointer| text(data, pointer)?.parse::<Timestamp>().ok());
        let made = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let key = Key {
            rank: 0,
            kind: text(data, "/regarding/kind").unwrap_or_default().to_owned(),
            namespace: text(data, "/regarding/namespace").unwrap_or_default().to_owned(),
            name: text(data, "/regarding/name").unwrap_or_default().to_owned(),
        };
        Some(Self {
            id: object.metadata.uid.clone()?,
            at: told.or(made)?,
            about: key.to_string(),
            reason: text(data, "/reason").unwrap_or_default().to_owned(),
            note: one_line(text(data, "/note").unwrap_or_default()),
            warning: text(data, "/type") == Some("Warning"),
        })
    }
}

fn text<'a>(data: &'a Value, pointer: &str) -> Option<&'a str> {
    data.pointer(pointer)?.as_str()
}

fn condition<'a>(data: &'a Value, name: &str) -> Option<&'a Value> {
    let all = data.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|one| one.get("type").and_then(Value::as_str) == Some(name))
}

fn is_true(condition: &Value) -> bool {
    text(condition, "/status") == Some("True")
}

/// `reason: message`, on one line.
fn said(one: &Value) -> Option<String> {
    let (reason, message) = (text(one, "/reason").unwrap_or_default(), text(one, "/message").unwrap_or_default());
    match (reason, message) {
        ("", "") => None,
        ("", message) => Some(one_line(message)),
        (reason, "") => Some(reason.to_owned()),
        (reason, message) => Some(format!("{reason}: {}", one_line(message))),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn item(kind: &str, status: Value) -> (String, Option<String>) {
        let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, "status": status});
        let Item { state, waits_for } = Item::of(kind, &serde_json::from_value(object).unwrap());
        (state, waits_for)
    }

    #[test]
    fn our_kinds_speak_through_ready() {
        let ready = |status: &str| {
            json!({"conditions": [
                {"type": "QuotaReady", "status": "False", "reason": "Odd", "message": "not the whole"},
                {"type": "Ready", "status": status, "reason": "NamespaceConflict", "message": "the namespace\nis taken"},
            ]})
        };
        let conflict = Some("NamespaceConflict: the namespace is taken".to_owned());
        assert_eq!(item("Workspace", ready("True")), ("Ready".into(), None));
        assert_eq!(item("Workspace", ready("False")), ("Waiting".into(), conflict.clone()));
        assert_eq!(item("Workspace", ready("Unknown")), ("Waiting".into(), conflict));
        assert_eq!(item("Colony", json!({})), ("Stored".into(), None));
    }

    #[test]
    fn pods_wait_for_a_node_or_an_image_and_not_when_they_are_over() {
        let unplaced = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"},
        ]});
        assert_eq!(item("Pod", unplaced), ("Pending".into(), Some("Unschedulable: 0/3 nodes are available".into())));
        assert_eq!(item("Pod", json!({})), ("Pending".into(), Some("no node is chosen yet".into())));
        let pulling = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}],
            "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]});
        assert_eq!(item("Pod", pulling), ("Pending".into(), Some("ErrImagePull".into())));
        let over = json!({"phase": "Succeeded", "conditions": [
            {"type": "Ready", "status": "False", "reason": "PodCompleted"}]});
        assert_eq!(item("Pod", over), ("Succeeded".into(), None));
    }

    #[test]
    fn jobs_end_or_fail_with_a_reason() {
        let with = |name: &str| json!({"conditions": [{"type": name, "status": "True", "reason": "Because"}]});
        assert_eq!(item("Job", with("Complete")), ("Complete".into(), None));
        assert_eq!(item("Job", with("Failed")), ("Failed".into(), Some("Because".into())));
        assert_eq!(item("Job", json!({"active": 2})), ("Running".into(), None));
        assert_eq!(item("Job", json!({})), ("Waiting".into(), None));
    }

    #[test]
    fn what_is_being_deleted_names_who_holds_it() {
        let object =
            json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}});
        let item = Item::of("Workspace", &serde_json::from_value(object).unwrap());
        assert_eq!((item.state.as_str(), item.waits_for.as_deref()), ("Deleting", Some("its end: a/b to let go")));
    }

    #[test]
    fn events_of_both_ages_are_read() {
        let read = |more: Value| {
            let mut object = json!({"metadata": {"name": "e", "uid": "u"}, "type": "Warning", "reason": "Odd",
                "note": "two\nlines", "regarding": {"kind": "Pod", "namespace": "n", "name": "p"}});
            object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Happening::of(&serde_json::from_value(object).unwrap())
        };
        let new = read(json!({"eventTime": "2026-01-01T00:00:00.000001Z"})).unwrap();
        assert_eq!((new.about.as_str(), new.note.as_str(), new.warning), ("Pod n/p", "two lines", true));
        assert!(read(json!({"eventTime": null, "deprecatedLastTimestamp": "2026-01-01T00:00:00Z"})).is_some());
        assert_eq!(read(json!({})), None, "an event that happened at no time");
    }
}
