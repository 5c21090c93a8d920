// SPDX-License-Identifier: Apache-2.0
//! The controller itself, in the plain style of many controllers: a cache, a pass, a requeue.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bivouac_runtime::Runtime;
use futures::StreamExt;
use http::{Method, Request};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::{
        WatchStreamExt,
        controller::{Action, Controller},
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};
use serde_json::{Value, json};

use super::{Bug, Lamp, lamp::LampStatus};
use crate::yard;

const FINALIZER: &str = "planted.bivouac.dev/machine";
const NOTE_OF: &str = "planted.bivouac.dev/lamp";
const AGAIN: Duration = Duration::from_secs(5);

struct Keeper {
    client: Client,
    runtime: Runtime,
    bug: Bug,
    lamps: Store<Lamp>,
    notes: Store<ConfigMap>,
    /// Which machine each Lamp has, as far as this process knows.
    remembered: Mutex<BTreeMap<String, String>>,
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Error(#[from] kube::Error);

pub async fn run(runtime: Runtime, bug: Bug) {
    let client = runtime.client.clone();
    let (notes, writer) = reflector::store();
    let watch = watcher(Api::<ConfigMap>::namespaced(client.clone(), "default"), watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .for_each(|_| std::future::ready(()));
    tokio::spawn(runtime.stop.clone().run_until_cancelled_owned(watch));
    if bug != Bug::EventOrder {
        // Half a view is no view.
        let _ = notes.wait_until_ready().await;
    }
    let lamps = Controller::new(Api::<Lamp>::all(client.clone()), watcher::Config::default());
    let notes_of = |note: ConfigMap| note.labels().get(NOTE_OF).map(|lamp| ObjectRef::<Lamp>::new(lamp));
    let lamps =
        lamps.watches(Api::<ConfigMap>::namespaced(client.clone(), "default"), watcher::Config::default(), notes_of);
    let stop = runtime.stop.clone();
    let keeper = Keeper { client, runtime, bug, lamps: lamps.store(), notes, remembered: Mutex::default() };
    let passes = lamps.graceful_shutdown_on(stop.cancelled_owned()).run(
        |lamp, keeper| async move { keeper.pass(&lamp).await.map(|()| keeper.next_look()) },
        |_, _, _| Action::requeue(AGAIN),
        Arc::new(keeper),
    );
    passes.for_each(|_| std::future::ready(())).await;
}

impl Keeper {
    async fn pass(&self, lamp: &Lamp) -> Result<(), Error> {
        if self.bug == Bug::MissedDelete {
            self.forget_gone().await?;
        } else if lamp.metadata.deletion_timestamp.is_some() {
            return self.end(lamp).await;
        } else if !lamp.finalizers().iter().any(|one| one == FINALIZER) {
            self.set_finalizers(lamp, &[FINALIZER]).await?;
        }
        let machine = self.machine(lamp).await?;
        self.note(lamp).await?;
        self.record(lamp, machine).await
    }

    fn next_look(&self) -> Action {
        // Without finalizers somebody has to look for what is gone.
        if self.bug == Bug::MissedDelete { Action::requeue(AGAIN) } else { Action::await_change() }
    }

    /// The machine of a Lamp. It is bought if there is none.
    async fn machine(&self, lamp: &Lamp) -> Result<String, Error> {
        let recorded = lamp.status.as_ref().and_then(|status| status.machine.clone());
        match self.bug {
            Bug::CreateThenRecord | Bug::MissedDelete => {
                let known = self.remembered().get(&lamp.name_any()).cloned().or(recorded);
                let machine = match known {
                    Some(machine) => machine,
                    None => self.buy(lamp).await?,
                };
                self.remembered().insert(lamp.name_any(), machine.clone());
                Ok(machine)
            }
            // Whoever bought for this Lamp before left its uid there.
            _ => match self.bought(lamp).await?.first() {
                Some(machine) => Ok(machine.clone()),
                None => self.buy(lamp).await,
            },
        }
    }

    async fn buy(&self, lamp: &Lamp) -> Result<String, Error> {
        let bought = self.yard(Method::POST, "", json!({ "tag": lamp.uid() })).await?;
        Ok(bought.get("id").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    async fn bought(&self, lamp: &Lamp) -> Result<Vec<String>, Error> {
        let list = self.yard(Method::GET, "", Value::Null).await?;
        let uid = lamp.uid().unwrap_or_default();
        let items = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let text = |item: &Value, field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(items.iter().filter(|item| text(item, "tag") == uid).map(|item| text(item, "id")).collect())
    }

    async fn end(&self, lamp: &Lamp) -> Result<(), Error> {
        if !lamp.finalizers().iter().any(|one| one == FINALIZER) {
            return Ok(());
        }
        match self.bug {
            // The answer is not looked at.
            Bug::EarlyFinalizer | Bug::CreateThenRecord => {
                if let Some(machine) = lamp.status.as_ref().and_then(|status| status.machine.clone()) {
                    let _ = self.yard(Method::DELETE, &machine, Value::Null).await;
                }
            }
            _ => {
                for machine in self.bought(lamp).await? {
                    self.yard(Method::DELETE, &machine, Value::Null).await?;
                }
            }
        }
        self.set_finalizers(lamp, &[]).await
    }

    /// Ends the machines of Lamps that are not there any more, as far as this process remembers them.
    async fn forget_gone(&self) -> Result<(), Error> {
        let gone: Vec<_> = {
            let there = |name: &str| self.lamps.get(&ObjectRef::new(name)).is_some();
            self.remembered().iter().filter(|(name, _)| !there(name)).map(|(a, b)| (a.clone(), b.clone())).collect()
        };
        for (name, machine) in gone {
            self.yard(Method::DELETE, &machine, Value::Null).await?;
            self.remembered().remove(&name);
        }
        Ok(())
    }

    /// A note about where the Lamp is.
    async fn note(&self, lamp: &Lamp) -> Result<(), Error> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), "default");
        let owner = lamp.controller_owner_ref_of();
        let mut note = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "labels": { NOTE_OF: lamp.name_any() }, "ownerReferences": [owner] },
            "data": { "of": lamp.name_any() },
        });
        if self.bug == Bug::StaleCache {
            let of = |note: &Arc<ConfigMap>| note.labels().get(NOTE_OF) == Some(&lamp.name_any());
            if !self.notes.state().iter().any(of) {
                set(&mut note, "generateName", json!(format!("{}-", lamp.name_any())));
                let note: ConfigMap = serde_json::from_value(note).map_err(kube::Error::SerdeError)?;
                api.create(&PostParams::default(), &note).await?;
            }
            return Ok(());
        }
        let name = format!("note-{}", lamp.name_any());
        if self.notes.get(&ObjectRef::new(&name).within("default")).is_none() {
            set(&mut note, "name", json!(name));
            api.patch(&name, &PatchParams::apply("keeper").force(), &Patch::Apply(&note)).await?;
        }
        Ok(())
    }

    async fn record(&self, lamp: &Lamp, machine: String) -> Result<(), Error> {
        let palette = self.notes.get(&ObjectRef::new("palette").within("default"));
        let color = palette.and_then(|palette| palette.data.as_ref()?.get("color").cloned());
        let known = lamp.status.clone().unwrap_or_default();
        let status = LampStatus {
            machine: Some(machine),
            // Once chosen it stays.
            color: known.color.clone().or(color).or(Some("grey".to_owned())),
            place: Some(lamp.spec.place.clone()),
            looked_at: (self.bug == Bug::HotLoop).then(|| self.runtime.clock.now().to_string()),
        };
        if status != known {
            let status = json!({ "apiVersion": "planted.bivouac.dev/v1", "kind": "Lamp", "status": status });
            let api = Api::<Lamp>::all(self.client.clone());
            api.patch_status(&lamp.name_any(), &PatchParams::apply("keeper").force(), &Patch::Apply(status)).await?;
        }
        Ok(())
    }

    async fn set_finalizers(&self, lamp: &Lamp, finalizers: &[&str]) -> Result<(), Error> {
        let patch = json!({ "metadata": {
            "uid": lamp.uid(), "resourceVersion": lamp.resource_version(), "finalizers": finalizers,
        }});
        Api::<Lamp>::all(self.client.clone())
            .patch(&lamp.name_any(), &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    async fn yard(&self, method: Method, id: &str, body: Value) -> Result<Value, Error> {
        let path = if id.is_empty() { yard::ROOT.to_owned() } else { format!("{}/{id}", yard::ROOT) };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).body(body);
        Ok(self.client.request(request.map_err(kube::Error::HttpError)?).await?)
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

trait Owner {
    fn controller_owner_ref_of(&self) -> Value;
}

impl Owner for Lamp {
    fn controller_owner_ref_of(&self) -> Value {
        json!({
            "apiVersion": "planted.bivouac.dev/v1", "kind": "Lamp", "name": self.name_any(),
            "uid": self.uid(), "controller": true,
        })
    }
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(field.to_owned(), value);
    }
}
