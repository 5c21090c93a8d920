// SPDX-License-Identifier: Apache-2.0
//! Following a resource.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::{BufMut, Bytes, BytesMut};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::read;
use crate::{
    answer::{
        Answer, partial,
        table::{self, Setting},
    },
    call::Call,
    field::Error,
    object::set,
    registry::Resource,
    request::{
        accept::Form,
        options::{Include, Options, refuse},
    },
    server::Inner,
    status::Status,
    store::{Compacted, Event, Kind, Range, Stored, Watcher},
};

/// Bookmarks come this often, as in the real server.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// A watch without a time limit of its own ends after this long, and up to twice.
const SHORTEST: u64 = 30 * 60;
/// Events that are sent in one piece.
const BATCH: usize = 256;

/// Answers with a stream of events.
pub async fn run(call: &mut Call) -> Result<Answer, Status> {
    check(&call.options)?;
    read::check_fields(&call.resource, &call.options)?;
    let version = call.options.resource_version.as_deref().unwrap_or_default();
    let wanted = read::revision(version).map_err(|_| {
        let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
        let message = Error::invalid("resourceVersion", version, why).to_string();
        Status::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", message)
    })?;
    let view = View::new(call);
    let initial = initial_events(call, wanted);
    let (mut first, after) = match initial {
        Initial::Objects { marked } => begin_with_objects(call, &view, marked)?,
        Initial::Nothing => (BytesMut::new(), wanted),
        Initial::FromNow => (BytesMut::new(), call.server.store.revision()),
    };
    let watcher = match call.server.store.watch(&call.resource.keyspace, after) {
        Ok(watcher) => watcher,
        // The answer is a stream that says so: the real server has sent its headers by then.
        Err(compacted) => {
            first.put_slice(&too_old(&compacted));
            return Ok(Answer::Watch(Box::new(stream::iter([first.freeze()]))));
        }
    };
    let seconds = call.options.timeout_seconds.unwrap_or_else(|| SHORTEST + call.server.random() % SHORTEST);
    let now = Instant::now();
    let flow = Flow {
        watcher,
        view,
        ends: now + Duration::from_secs(seconds),
        bookmark: call.options.allow_watch_bookmarks.then(|| now + BOOKMARK_EVERY),
        over: false,
    };
    let head = stream::iter((!first.is_empty()).then(|| first.freeze()));
    let tail = stream::unfold(flow, Flow::next);
    Ok(Answer::Watch(Box::new(Box::pin(head.chain(tail)))))
}

enum Initial {
    /// What exists now comes first; `marked` ends it with a bookmark that says so.
    Objects {
        marked: bool,
    },
    /// Only what happened after the revision.
    Nothing,
    FromNow,
}

fn initial_events(call: &Call, wanted: u64) -> Initial {
    match call.options.send_initial_events {
        Some(true) => Initial::Objects { marked: call.options.allow_watch_bookmarks },
        Some(false) if wanted == 0 => Initial::FromNow,
        None if wanted == 0 => Initial::Objects { marked: false },
        _ => Initial::Nothing,
    }
}

fn begin_with_objects(call: &Call, view: &View, marked: bool) -> Result<(BytesMut, u64), Status> {
    let range = Range { namespace: view.namespace.as_deref(), ..Range::default() };
    let page = call
        .server
        .store
        .range(&call.resource.keyspace, &range, |stored| read::matches(&view.options, &view.resource, stored))
        .map_err(|error| Status::expired(error.to_string()))?;
    let mut out = BytesMut::new();
    for stored in &page.items {
        view.write(&mut out, "ADDED", stored, None);
    }
    if marked && !fault!(EarlyBookmark) {
        out.put_slice(&view.bookmark(page.revision, true));
    }
    Ok((out, page.revision))
}

/// What of the events a caller sees, and in which form.
struct View {
    resource: Arc<Resource>,
    options: Options,
    namespace: Option<String>,
    form: Form,
    server: Arc<Inner>,
    include: Include,
    /// The columns of a table come once.
    columns_sent: AtomicBool,
}

impl View {
    fn new(call: &Call) -> Self {
        let mut options = call.options.clone();
        // The old form of a path names one object.
        if let Some(name) = &call.target.name {
            let field = crate::request::selector::FieldRequirement {
                field: "metadata.name".into(),
                equal: true,
                value: name.clone(),
            };
            options.fields.0.push(field);
        }
        Self {
            resource: call.resource.clone(),
            namespace: call.target.namespace.clone(),
            options,
            form: call.accepted.form,
            server: call.server.clone(),
            include: call.options.include().unwrap_or_default(),
            columns_sent: AtomicBool::new(false),
        }
    }

    fn sees(&self, stored: &Stored) -> bool {
        let here = self
            .namespace
            .as_deref()
            .is_none_or(|namespace| stored.key().strip_prefix(namespace).is_some_and(|rest| rest.starts_with('/')));
        here && read::matches(&self.options, &self.resource, stored)
    }

    /// An object that enters or leaves the view is added or deleted for this caller.
    fn show(&self, out: &mut BytesMut, event: &Event) {
        let now = event.kind != Kind::Deleted && self.sees(&event.now);
        let before = event.before.as_ref().is_some_and(|before| self.sees(before));
        match (before, now) {
            (false, false) => {}
            (false, true) => self.write(out, "ADDED", &event.now, None),
            (true, true) => self.write(out, "MODIFIED", &event.now, None),
            (true, false) if event.kind == Kind::Deleted => self.write(out, "DELETED", &event.now, None),
            // It still exists, but not for this caller: its last visible state, with the revision of the change.
            (true, false) => {
                if let Some(before) = event.before.as_ref().filter(|_| !fault!(LeavingUnseen)) {
                    self.write(out, "DELETED", before, Some(event.revision()));
                }
            }
        }
    }

    fn write(&self, out: &mut BytesMut, kind: &str, stored: &Stored, revision: Option<u64>) {
        let body = self.resource.present(stored);
        let body = match revision {
            None => body,
            Some(revision) => at_revision(&body, revision),
        };
        let body = match self.form {
            Form::Table => {
                let setting = Setting { now: self.server.clock.now(), include: self.include };
                let first = !self.columns_sent.swap(true, Ordering::Relaxed);
                shown(&body, |object| table::of_event(&self.resource, object, setting, first))
            }
            Form::PartialMetadata | Form::PartialMetadataList => shown(&body, partial),
            _ => body,
        };
        out.put_slice(b"{\"type\":\"");
        out.put_slice(kind.as_bytes());
        out.put_slice(b"\",\"object\":");
        out.put_slice(&body);
        out.put_slice(b"}\n");
    }

    fn bookmark(&self, revision: u64, initial_events_end: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if initial_events_end {
            set(&mut metadata, "annotations", json!({ "k8s.io/initial-events-end": "true" }));
        }
        let (api_version, kind) = match self.form {
            Form::Table => ("meta.k8s.io/v1", "Table"),
            Form::PartialMetadata | Form::PartialMetadataList => ("meta.k8s.io/v1", "PartialObjectMetadata"),
            _ => (&*self.resource.api_version, &*self.resource.kind),
        };
        let mut object = if self.resource.custom().is_some() || self.form != Form::Object {
            json!({})
        } else {
            self.resource.empty.clone()
        };
        set(&mut object, "apiVersion", api_version);
        set(&mut object, "kind", kind);
        set(&mut object, "metadata", metadata);
        line("BOOKMARK", &object)
    }
}

fn shown(body: &Bytes, form: impl Fn(&Value) -> Value) -> Bytes {
    let object = serde_json::from_slice(body).unwrap_or_default();
    crate::answer::to_bytes(&form(&object))
}

fn at_revision(body: &Bytes, revision: u64) -> Bytes {
    shown(body, |object: &Value| {
        let mut object = object.clone();
        crate::object::Object::set_meta(&mut object, "resourceVersion", revision.to_string());
        object
    })
}

fn line(kind: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").into()
}

fn too_old(compacted: &Compacted) -> Bytes {
    let Compacted { requested, oldest } = compacted;
    let status = Status::expired(format!("too old resource version: {requested} ({oldest})"));
    line("ERROR", &serde_json::to_value(status).unwrap_or_default())
}

/// A running watch.
struct Flow {
    watcher: Watcher,
    view: View,
    ends: Instant,
    bookmark: Option<Instant>,
    over: bool,
}

impl Flow {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        while !self.over {
            let wake = self.bookmark.map_or(self.ends, |bookmark| bookmark.min(self.ends));
            tokio::select! {
                biased;
                batch = self.watcher.next_batch(BATCH) => match batch {
                    Ok(events) => {
                        let mut out = BytesMut::new();
                        events.iter().for_each(|event| self.view.show(&mut out, event));
                        if !out.is_empty() {
                            return Some((out.freeze(), self));
                        }
                    }
                    Err(compacted) => {
                        self.over = true;
                        return Some((too_old(&compacted), self));
                    }
                },
                () = tokio::time::sleep_until(wake) => {
                    if wake >= self.ends {
                        return None;
                    }
                    self.bookmark = Some(wake + BOOKMARK_EVERY);
                    let bookmark = self.view.bookmark(self.watcher.progress(), false);
                    return Some((bookmark, self));
                }
            }
        }
        None
    }
}

fn check(options: &Options) -> Result<(), Status> {
    const MATCH: &str = "resourceVersionMatch";
    let mut errors = Vec::new();
    match (options.send_initial_events, options.resource_version_match.as_deref()) {
        (None, Some(how)) => {
            errors.push(Error::forbidden(
                MATCH,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
            if how != "NotOlderThan" {
                errors.push(Error::not_supported(MATCH, how, &["NotOlderThan"]));
            }
        }
        (Some(_), None) => {
            errors.push(Error::forbidden(
                MATCH,
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        (Some(_), Some(how)) if how != "NotOlderThan" => {
            errors.push(Error::forbidden(
                MATCH,
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
            errors.push(Error::not_supported(MATCH, how, &["NotOlderThan"]));
        }
        _ => {}
    }
    if options.continue_token.is_some() {
        errors.push(Error::forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
    }
    refuse("ListOptions", &errors)
}
