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

/// The scripts, with the certificate beside them. Who may not see the certificate mounts a script alone.
const SCRIPTS: &str = "flux-operator";
/// The image with Flux, mounted as it is.
const IMAGE: &str = "flux-operator-view";
const EXECUTABLE: i32 = 0o777;

/// Volumes that every pod has, and those of its containers.
pub fn of_pod(cluster: &Cluster<'_>) -> Vec<Volume> {
    let view = Volume {
        name: cluster.view.name.clone(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..Volume::default()
    };
    let mut volumes = vec![view, scripts(cluster)];
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

/// Every field of a pod is paid for with each of its writes, so there is one volume for all containers, and nothing is
/// said twice.
fn scripts(cluster: &Cluster<'_>) -> Volume {
    let script = |key: String| item(script::file(&key), key);
    let init = item(script::INIT_FILE.to_owned(), cluster.view.name.clone());
    let sidecars = cluster.sidecars.iter().filter_map(|placed| script::sidecar_key(*placed));
    let others = std::iter::once(script::runner_key(cluster)).chain(sidecars).map(script);
    let items = std::iter::once(init).chain(others).collect();
    let scripts =
        ConfigMapProjection { name: cluster.config_map_name(), items: Some(items), ..ConfigMapProjection::default() };
    let scripts = VolumeProjection { config_map: Some(scripts), ..VolumeProjection::default() };
    let source =
        ProjectedVolumeSource { sources: Some(vec![scripts, certificate(cluster)]), default_mode: Some(EXECUTABLE) };
    Volume { name: SCRIPTS.to_owned(), projected: Some(source), ..Volume::default() }
}

fn item(path: String, key: String) -> KeyToPath {
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
    vec![mount(&cluster.view.name, &cluster.view.mount_path), script_alone(script::INIT_FILE)]
}

pub fn mounts_of_runner(cluster: &Cluster<'_>) -> Vec<VolumeMount> {
    let scripts = VolumeMount { read_only: Some(true), ..mount(SCRIPTS, script::FOLDER) };
    [mounts(cluster), vec![scripts], own_mounts(cluster.runner.container)].concat()
}

pub fn mounts_of_sidecar(cluster: &Cluster<'_>, container: &Container, script: Option<&str>) -> Vec<VolumeMount> {
    let script = script.map(script_alone).into_iter().collect();
    [mounts(cluster), script, own_mounts(container)].concat()
}

fn script_alone(file: &str) -> VolumeMount {
    let path = format!("{}/{file}", script::FOLDER);
    VolumeMount { sub_path: Some(file.to_owned()), read_only: Some(true), ..mount(SCRIPTS, &path) }
}

/// What all containers beside the init mount. The programs of the view lie in the shared volume, or in the image, and
/// appear at the place that they were built for: no second copy. The home directory is a part of the shared volume, too.
fn mounts(cluster: &Cluster<'_>) -> Vec<VolumeMount> {
    let view = &cluster.view.name;
    let part =
        |volume: &str, part: &str, path: &str| VolumeMount { sub_path: Some(part.to_owned()), ..mount(volume, path) };
    let mut mounts = if cluster.is_view_mounted {
        vec![part(IMAGE, "opt/software", "/opt/software"), part(IMAGE, "opt/views", "/opt/views")]
    } else {
        vec![part(view, "software", "/opt/software")]
    };
    mounts.extend([part(view, "home", "/home/flux-operator"), mount(view, &cluster.view.mount_path)]);
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
