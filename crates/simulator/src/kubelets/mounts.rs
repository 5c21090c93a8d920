// SPDX-License-Identifier: Apache-2.0
//! What pods mount from ConfigMaps and Secrets. No container starts before all of it is there.
//!
//! Who has to wait says so in the condition [`MOUNTED`]. It stays until the containers have started: until then it tells
//! since when they may.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ConfigMapProjection, ConfigMapVolumeSource, Container, KeyToPath, Pod, PodCondition, SecretProjection,
    SecretVolumeSource, Volume, VolumeMount,
};

use super::{
    conditions,
    container::{Told, has_begun},
    pod::Life,
};
use crate::{
    kinds::View,
    shelf::Key,
    workload::{condition, time},
};

const MOUNTED: &str = "simulator.bivouac.dev/mounted";
/// Every namespace of a real cluster has it. Here nobody makes it, and nobody needs it.
const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";

/// Whether a pod waits for something that it mounts.
pub fn waits(pod: &Pod) -> bool {
    condition(pod, MOUNTED).is_some_and(|one| one.status == "False")
}

/// Since when everything is there that the containers mount. `None` as long as something is missing, which is told once.
pub fn since(pod: &Pod, life: &mut Life, view: &View, now: Timestamp) -> Option<Timestamp> {
    let known = condition(pod, MOUNTED);
    if all_begun(life) {
        return Some(Timestamp::MIN);
    }
    let missing = missing(pod, view);
    if !missing.is_empty() {
        let told = known.filter(|one| one.status == "False").and_then(|one| one.message.as_deref()).unwrap_or_default();
        let new = missing.iter().filter(|words| !told.contains(words.as_str())).cloned();
        life.told.extend(new.map(|words| -> Told { (false, "FailedMount", words) }));
        note(life, "False", Some(missing.join("; ")), known, now);
        return None;
    }
    if waits(pod) {
        note(life, "True", None, known, now);
        return Some(now);
    }
    Some(known.and_then(|one| one.last_transition_time.as_ref()).map_or(Timestamp::MIN, |time| time.0))
}

/// Once the containers have started, nobody asks any more.
pub fn forget(life: &mut Life) {
    if all_begun(life) {
        conditions::remove(&mut life.status, MOUNTED);
    }
}

fn note(life: &mut Life, truth: &str, message: Option<String>, known: Option<&PodCondition>, now: Timestamp) {
    let same = known.filter(|one| one.status == truth).and_then(|one| one.last_transition_time.clone());
    let new = PodCondition {
        type_: MOUNTED.to_owned(),
        status: truth.to_owned(),
        message,
        last_transition_time: same.or_else(|| Some(time(now))),
        ..PodCondition::default()
    };
    conditions::put(&mut life.status, new);
}

fn all_begun(life: &Life) -> bool {
    let all = life.status.container_statuses.as_deref().unwrap_or_default();
    !all.is_empty() && all.iter().all(has_begun)
}

/// A volume, or a part of one, that comes from an object.
#[derive(Debug)]
struct Source<'a> {
    volume: &'a str,
    kind: Kind,
    name: &'a str,
    items: Option<&'a [KeyToPath]>,
    optional: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    ConfigMap,
    Secret,
}

/// What is missing, in the words of a kubelet.
fn missing(pod: &Pod, view: &View) -> Vec<String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let needed = volumes(pod).flat_map(sources).filter(|one| !one.optional && one.name != ROOT_CERTIFICATE);
    needed.flat_map(|source| source.missing(namespace, view)).collect()
}

/// The text of a file, as a container sees it.
pub fn file(pod: &Pod, container: &Container, path: &str, view: &View) -> Option<String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    container.volume_mounts.iter().flatten().find_map(|mount| {
        let within = within(mount, path)?;
        let volume = volumes(pod).find(|volume| volume.name == mount.name)?;
        sources(volume).find_map(|source| source.value(namespace, source.key(within)?, view))
    })
}

/// What a path of the container is called in the volume.
fn within<'a>(mount: &'a VolumeMount, path: &'a str) -> Option<&'a str> {
    match mount.sub_path.as_deref().filter(|part| !part.is_empty()) {
        Some(part) => (mount.mount_path == path).then_some(part),
        None => path.strip_prefix(mount.mount_path.trim_end_matches('/'))?.strip_prefix('/'),
    }
}

fn volumes(pod: &Pod) -> impl Iterator<Item = &Volume> {
    pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten())
}

fn sources(volume: &Volume) -> impl Iterator<Item = Source<'_>> {
    let map = volume.config_map.iter().map(|ConfigMapVolumeSource { name, items, optional, .. }| {
        Source::new(volume, Kind::ConfigMap, name, items, *optional)
    });
    let secret = volume.secret.iter().map(|SecretVolumeSource { secret_name, items, optional, .. }| {
        Source::new(volume, Kind::Secret, secret_name.as_deref().unwrap_or_default(), items, *optional)
    });
    let parts = volume.projected.iter().flat_map(|all| all.sources.iter().flatten()).filter_map(|part| {
        let map = part.config_map.as_ref().map(|ConfigMapProjection { name, items, optional }| {
            Source::new(volume, Kind::ConfigMap, name, items, *optional)
        });
        let secret = part.secret.as_ref().map(|SecretProjection { name, items, optional }| {
            Source::new(volume, Kind::Secret, name, items, *optional)
        });
        map.or(secret)
    });
    map.chain(secret).chain(parts)
}

impl<'a> Source<'a> {
    fn new(
        volume: &'a Volume,
        kind: Kind,
        name: &'a str,
        items: &'a Option<Vec<KeyToPath>>,
        optional: Option<bool>,
    ) -> Self {
        Self { volume: &volume.name, kind, name, items: items.as_deref(), optional: optional == Some(true) }
    }

    fn missing(&self, namespace: &str, view: &View) -> Vec<String> {
        let failed = |why: String| format!("MountVolume.SetUp failed for volume \"{}\" : {why}", self.volume);
        let key = Key::new(namespace, self.name);
        let (there, thing, word) = match self.kind {
            Kind::ConfigMap => (view.config_maps.get(&key).is_some(), "configmap", "config"),
            Kind::Secret => (view.secrets.get(&key).is_some(), "secret", "secret"),
        };
        if !there {
            return vec![failed(format!("{thing} \"{}\" not found", self.name))];
        }
        let absent = |item: &&KeyToPath| self.value(namespace, &item.key, view).is_none();
        let absent = self.items.unwrap_or_default().iter().filter(absent);
        absent.map(|item| failed(format!("references non-existent {word} key: {}", item.key))).collect()
    }

    /// The key that becomes the file.
    fn key<'b>(&'b self, file: &'b str) -> Option<&'b str> {
        match self.items {
            Some(items) => items.iter().find(|item| item.path == file).map(|item| item.key.as_str()),
            None => Some(file),
        }
    }

    fn value(&self, namespace: &str, key: &str, view: &View) -> Option<String> {
        let object = Key::new(namespace, self.name);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self.kind {
            Kind::ConfigMap => {
                let map = view.config_maps.get(&object)?;
                let plain = map.data.as_ref().and_then(|data| data.get(key)).cloned();
                plain.or_else(|| Some(text(&map.binary_data.as_ref()?.get(key)?.0)))
            }
            Kind::Secret => Some(text(&view.secrets.get(&object)?.data.as_ref()?.get(key)?.0)),
        }
    }
}
