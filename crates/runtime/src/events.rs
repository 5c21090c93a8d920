// SPDX-License-Identifier: Apache-2.0
//! Kubernetes events. A repeat within ten minutes counts up the first one instead of adding another.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        events::v1::{Event, EventSeries},
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::reconcile::{Note, fingerprint};

const SERIES: SignedDuration = SignedDuration::from_mins(10);
/// An event is worth a moment, not a pass.
const PATIENCE: Duration = Duration::from_secs(5);
/// The API server refuses longer notes.
const LONGEST_NOTE: usize = 1024;

/// Publishes the events of one controller.
pub struct Events {
    client: Client,
    controller: String,
    instance: String,
    recent: Mutex<HashMap<String, Series>>,
}

#[derive(Debug)]
struct Series {
    name: String,
    count: i32,
    last: Timestamp,
}

impl Events {
    pub fn new(client: Client, controller: String, instance: String) -> Self {
        Self { client, controller, instance, recent: Mutex::default() }
    }

    /// A lost event is logged and not retried: the condition says the same and stays.
    pub async fn publish(&self, about: &ObjectReference, note: &Note, now: Timestamp) {
        let sent = tokio::time::timeout(PATIENCE, self.send(about, note, now)).await;
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(reason = note.reason, %error, "event not published"),
            Err(_) => tracing::warn!(reason = note.reason, "event not published in time"),
        }
    }

    async fn send(&self, about: &ObjectReference, note: &Note, now: Timestamp) -> Result<(), kube::Error> {
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let api = Api::<Event>::namespaced(self.client.clone(), namespace);
        let identity = json!([about.uid, note.reason, note.action, note.text, self.controller]);
        let key = fingerprint(&identity);
        if let Some((name, count)) = self.repeat(&key, now) {
            let series = EventSeries { count, last_observed_time: MicroTime(now) };
            let patched = api.patch(&name, &PatchParams::default(), &Patch::Merge(json!({ "series": series }))).await;
            match patched {
                // Events expire; then this is the first of a new series.
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                other => return other.map(drop),
            }
        }
        let name = event_name(about, &key, now);
        api.create(&PostParams::default(), &self.event(about, note, now, &name, namespace)).await?;
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|_, series| now.duration_since(series.last) < SERIES);
        recent.insert(key, Series { name, count: 1, last: now });
        Ok(())
    }

    fn repeat(&self, key: &str, now: Timestamp) -> Option<(String, i32)> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let series = recent.get_mut(key).filter(|series| now.duration_since(series.last) < SERIES)?;
        series.count = series.count.saturating_add(1);
        series.last = now;
        Some((series.name.clone(), series.count))
    }

    fn event(&self, about: &ObjectReference, note: &Note, now: Timestamp, name: &str, namespace: &str) -> Event {
        Event {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            type_: Some(if note.warning { "Warning" } else { "Normal" }.to_owned()),
            reason: Some(note.reason.to_owned()),
            action: Some(note.action.to_owned()),
            note: Some(shortened(&note.text)),
            event_time: Some(MicroTime(now)),
            regarding: Some(about.clone()),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }
}

fn event_name(about: &ObjectReference, key: &str, now: Timestamp) -> String {
    // Names end at 253 characters; the object's own name may be as long.
    let object: String = about.name.as_deref().unwrap_or("object").chars().take(200).collect();
    format!("{}.{key}.{:x}", object.trim_end_matches(['.', '-']), now.as_millisecond())
}

fn shortened(text: &str) -> String {
    let end = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= LONGEST_NOTE).last();
    text.get(..end.unwrap_or(0)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_NOTE, event_name, shortened};
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::ObjectReference;

    #[test]
    fn long_notes_end_at_a_character() {
        let text = "ä".repeat(LONGEST_NOTE);
        let short = shortened(&text);
        assert_eq!(short.len(), LONGEST_NOTE);
        assert!(text.starts_with(&short));
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn event_names_fit_whatever_the_object_is_called() {
        let about = ObjectReference { name: Some("x".repeat(253)), ..ObjectReference::default() };
        assert!(event_name(&about, "0123456789abcdef", Timestamp::MAX).len() <= 253);
    }
}
