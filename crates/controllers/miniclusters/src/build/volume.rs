// SPDX-License-Identifier: Apache-2.0
//! Volumes of the pods, and where containers mount them.

use std::collections::BTreeMap;

use bivouac_api::flux::{self, Container};
use k8s_openapi::{
    api::core::v1::{
        CSIVolumeSource, ConfigMapProjection, ConfigMapVolumeSource, EmptyDirVolumeSource, HostPathVolumeSource,
        ImageVolumeSource, KeyToPath, PersistentVolumeClaimVolumeSource, ProjectedVolumeSource, SecretProjection,
        SecretVolumeSource, Volume, VolumeMount, VolumeProjection,
    },
    apimachinery::pkg::api::resource::Quantity,
};

use crate::{cluster::Cluster, script};

const SCRIPTS: &str = "flux-operator";
/// The runner's own script with the certificate beside it.
const RUNNER: &str = "flux-operator-runner";
const HOME: &str = "flux-operator-home";
/// The image with Flux, mounted as it is.
const IMAGE: &str = "flux-operator-view";
const EXECUTABLE: i32 = 0o777;

/// Volumes that every pod has, and those of its containers.
pub fn of_pod(cluster: &Cluster<'_>) -> Vec<Volume> {
    let empty = |name: &str| Volume {
        name: name.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..Volume::default()
    };
    let mut volumes = vec![empty(&cluster.view.name), empty(HOME), scripts(cluster), runner(cluster)];
    volumes.extend(cluster.is_view_mounted.then(|| Volume {
        name: IMAGE.to_owned(),
        image: Some(ImageVolumeSource {
            reference: Some(cluster.view.image.clone()),
            pull_policy: Some(super::container::view_pull_policy(cluster)),
        }),
        ..Volume::default()
    }));
    volumes.extend(of_containers(&cluster.spec.containers));
    volumes
}

/// The scripts of the init container and of those beside the runner. Every field of a pod is paid for with each of its
/// writes, so nothing is said twice.
fn scripts(cluster: &Cluster<'_>) -> Volume {
    let wrapped = cluster.sidecars.iter().filter(|placed| !placed.container.no_wrap_entrypoint);
    let wrapped = wrapped.map(|placed| item(format!("start-{}", placed.index), format!("start-{}.sh", placed.index)));
    let items = std::iter::once(item(cluster.view.name.clone(), "flux-init.sh".to_owned())).chain(wrapped);
    let source = ConfigMapVolumeSource {
        name: cluster.config_map_name(),
        items: Some(items.collect()),
        default_mode: Some(EXECUTABLE),
        ..ConfigMapVolumeSource::default()
    };
    Volume { name: SCRIPTS.to_owned(), config_map: Some(source), ..Volume::default() }
}

fn runner(cluster: &Cluster<'_>) -> Volume {
    let index = cluster.runner.index;
    let script = ConfigMapProjection {
        name: cluster.config_map_name(),
        items: Some(vec![item(format!("wait-{index}"), format!("wait-{index}.sh"))]),
        ..ConfigMapProjection::default()
    };
    let script = VolumeProjection { config_map: Some(script), ..VolumeProjection::default() };
    let source =
        ProjectedVolumeSource { sources: Some(vec![script, certificate(cluster)]), default_mode: Some(EXECUTABLE) };
    Volume { name: RUNNER.to_owned(), projected: Some(source), ..Volume::default() }
}

fn item(key: String, path: String) -> KeyToPath {
    KeyToPath { key, path, mode: None }
}

/// Root reads it with the strictest mode. Who runs as somebody else says so, and could not read root's file.
fn certificate(cluster: &Cluster<'_>) -> VolumeProjection {
    let container = cluster.runner.container.security_context.as_ref();
    let pod = cluster.pod.security_context.as_ref();
    let user = container.and_then(|rights| rights.run_as_user).or(pod.and_then(|rights| rights.run_as_user));
    let not_root =
        container.and_then(|rights| rights.run_as_non_root).or(pod.and_then(|rights| rights.run_as_non_root));
    let is_root = user.unwrap_or_default() == 0 && not_root != Some(true);
    let mode = if is_root { 0o400 } else { 0o444 };
    let items = vec![KeyToPath { key: "curve.cert".into(), path: "curve.cert".into(), mode: Some(mode) }];
    if cluster.settings.certificate_in_config_map {
        let source = ConfigMapProjection { name: cluster.config_map_name(), items: Some(items), ..Default::default() };
        VolumeProjection { config_map: Some(source), ..VolumeProjection::default() }
    } else {
        let source = SecretProjection { name: cluster.secret_name(), items: Some(items), ..Default::default() };
        VolumeProjection { secret: Some(source), ..VolumeProjection::default() }
    }
}

/// What the init container mounts.
pub fn mounts_of_init(cluster: &Cluster<'_>) -> Vec<VolumeMount> {
    vec![
        mount(&cluster.view.name, &cluster.view.mount_path),
        mount(HOME, "/home/flux-operator"),
        VolumeMount { read_only: Some(true), ..mount(SCRIPTS, script::FOLDER) },
    ]
}

/// What a container of the pods mounts. The programs of the view lie in the shared volume, or in the image, and appear
/// at the place that they were built for: no second copy.
pub fn mounts(cluster: &Cluster<'_>, container: &Container, is_runner: bool) -> Vec<VolumeMount> {
    let view = &cluster.view.name;
    let folder = if is_runner { RUNNER } else { SCRIPTS };
    let part =
        |volume: &str, part: &str, path: &str| VolumeMount { sub_path: Some(part.to_owned()), ..mount(volume, path) };
    let programs = if cluster.is_view_mounted {
        vec![part(IMAGE, "opt/software", "/opt/software"), part(IMAGE, "opt/views", "/opt/views")]
    } else {
        vec![part(view, "software", "/opt/software")]
    };
    let mut mounts = programs;
    mounts.extend([
        mount(HOME, "/home/flux-operator"),
        mount(view, &cluster.view.mount_path),
        VolumeMount { read_only: Some(true), ..mount(folder, script::FOLDER) },
    ]);
    mounts.extend(own_mounts(container));
    mounts
}

/// What the user asked for. An empty directory without a path is for shared memory.
pub fn own_mounts(container: &Container) -> Vec<VolumeMount> {
    let own = |(name, volume): (&String, &flux::Volume)| {
        let path = if volume.path.is_empty() { "/dev/shm" } else { &volume.path };
        VolumeMount { read_only: volume.read_only.then_some(true), ..mount(name, path) }
    };
    container.volumes.iter().map(own).collect()
}

fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount { name: name.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

/// The volumes of some containers, each once.
pub fn of_containers(containers: &[Container]) -> Vec<Volume> {
    let all: BTreeMap<_, _> = containers.iter().flat_map(|container| &container.volumes).collect();
    all.into_iter().map(|(name, volume)| source(name, volume)).collect()
}

/// The kind of volume is told by the field that is set. A volume that says nothing of where it comes from is empty.
fn source(name: &str, volume: &flux::Volume) -> Volume {
    let mut made = Volume { name: name.to_owned(), ..Volume::default() };
    let text = |text: &String| (!text.is_empty()).then(|| text.clone());
    if !volume.csi_driver.is_empty() {
        made.csi = Some(CSIVolumeSource {
            driver: volume.csi_driver.clone(),
            volume_attributes: Some(volume.csi_driver_attributes.clone()),
            ..CSIVolumeSource::default()
        });
    } else if !volume.secret_name.is_empty() {
        made.secret =
            Some(SecretVolumeSource { secret_name: text(&volume.secret_name), ..SecretVolumeSource::default() });
    } else if !volume.empty_dir && !volume.host_path.is_empty() {
        made.host_path =
            Some(HostPathVolumeSource { path: volume.host_path.clone(), type_: Some("Directory".to_owned()) });
    } else if !volume.empty_dir && !volume.config_map_name.is_empty() {
        let items =
            volume.items.iter().map(|(key, path)| KeyToPath { key: key.clone(), path: path.clone(), mode: None });
        let items: Vec<_> = items.collect();
        made.config_map = Some(ConfigMapVolumeSource {
            name: volume.config_map_name.clone(),
            items: (!items.is_empty()).then_some(items),
            ..ConfigMapVolumeSource::default()
        });
    } else if !volume.empty_dir && !volume.claim_name.is_empty() {
        made.persistent_volume_claim = Some(PersistentVolumeClaimVolumeSource {
            claim_name: volume.claim_name.clone(),
            read_only: volume.read_only.then_some(true),
        });
    } else {
        let medium = volume.empty_dir_medium.eq_ignore_ascii_case("memory").then(|| "Memory".to_owned());
        made.empty_dir =
            Some(EmptyDirVolumeSource { medium, size_limit: text(&volume.empty_dir_size_limit).map(Quantity) });
    }
    made
}
