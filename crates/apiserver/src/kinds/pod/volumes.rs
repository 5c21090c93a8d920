// SPDX-License-Identifier: Apache-2.0
//! Volumes of pods.

use std::collections::BTreeMap;

use crate::{
    field::Error,
    kinds::{place::Place, values},
    names,
};

/// The volumes that are well formed, by name.
pub struct Volumes<'a> {
    own: BTreeMap<&'a str, Place<'a, 'a>>,
    /// Each pod of a StatefulSet gets a volume for every claim template.
    claims: &'a [&'a str],
}

impl Volumes<'_> {
    pub fn has(&self, name: &str) -> bool {
        self.own.contains_key(name) || self.claims.contains(&name)
    }

    /// Whether the volume can be a block device.
    pub fn is_claim(&self, name: &str) -> bool {
        let claim = |volume: &Place<'_, '_>| {
            volume.field("persistentVolumeClaim").exists() || volume.field("ephemeral").exists()
        };
        self.own.get(name).is_some_and(claim) || self.claims.contains(&name)
    }
}

/// Checks the volumes and says which there are.
pub fn check<'a>(at: &'a Place<'a, 'a>, claims: &'a [&'a str], errors: &mut Vec<Error>) -> Volumes<'a> {
    let mut volumes = BTreeMap::new();
    for volume in at.items() {
        let mut wrong = Vec::new();
        source(&volume, &mut wrong);
        let name = volume.field("name");
        if name.is_empty() {
            wrong.push(name.required(""));
        } else {
            name.named(names::label, &mut wrong);
        }
        if volumes.contains_key(name.text()) {
            wrong.push(name.duplicate());
        }
        if wrong.is_empty() {
            volumes.insert(volume.field("name").text(), volume);
        }
        errors.extend(wrong);
    }
    Volumes { own: volumes, claims }
}

/// The kinds of sources that are looked into, in the order in which the real server does.
const SOURCES: [&str; 28] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
];

fn source(volume: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let mut found = 0;
    for kind in SOURCES.into_iter().chain(["image"]) {
        let place = volume.field(kind);
        if !place.exists() {
            continue;
        }
        found += 1;
        if found > 1 {
            errors.push(place.forbidden("may not specify more than 1 volume type"));
            continue;
        }
        match kind {
            "emptyDir" => empty_dir(&place, errors),
            "hostPath" => host_path(&place, errors),
            "secret" => {
                place.field("secretName").must_be(errors);
                mode(&place.field("defaultMode"), errors);
                key_paths(&place.field("items"), errors);
            }
            "configMap" => {
                place.field("name").must_be(errors);
                mode(&place.field("defaultMode"), errors);
                key_paths(&place.field("items"), errors);
            }
            "nfs" => nfs(&place, errors),
            "persistentVolumeClaim" => {
                place.field("claimName").must_be(errors);
            }
            "downwardAPI" => downward(&place, errors),
            "projected" => projected(&place, errors),
            "csi" => {
                place.field("driver").must_be(errors);
            }
            "ephemeral" => {
                place.field("volumeClaimTemplate").must_be(errors);
            }
            "image" => {
                place.field("reference").must_be(errors);
                place.field("pullPolicy").maybe_one_of(&["Always", "IfNotPresent", "Never"], errors);
            }
            _ => {}
        }
    }
    if found == 0 {
        errors.push(volume.required("must specify a volume type"));
    }
}

fn empty_dir(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let limit = at.field("sizeLimit");
    if super::resources::amount(&limit).is_some_and(|limit| limit < Default::default()) {
        errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

fn host_path(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let path = at.field("path");
    if path.text().is_empty() {
        errors.push(path.required(""));
        return;
    }
    if path.text().split('/').any(|part| part == "..") {
        errors.push(path.invalid("must not contain '..'"));
    }
    at.field("type").maybe_one_of(&TYPES, errors);
}

fn nfs(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    at.field("server").must_be(errors);
    let path = at.field("path");
    path.must_be(errors);
    if !path.text().starts_with('/') {
        errors.push(path.invalid("must be an absolute path"));
    }
}

fn mode(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    if at.number().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.push(at.invalid("must be a number between 0 and 0777 (octal), both inclusive"));
    }
}

fn key_paths(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for item in at.items() {
        item.field("key").must_be(errors);
        let path = item.field("path");
        if path.must_be(errors) {
            local(&path, path.text(), errors);
        }
        mode(&item.field("mode"), errors);
    }
}

/// A path within a volume.
fn local(at: &Place<'_, '_>, path: &str, errors: &mut Vec<Error>) {
    errors.extend(values::relative(path).into_iter().map(|why| at.invalid_as(path, why)));
    if path.starts_with("..") && values::relative(path).is_empty() {
        errors.push(at.invalid_as(path, "must not start with '..'"));
    }
}

const FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

fn downward(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    mode(&at.field("defaultMode"), errors);
    for item in at.field("items").items() {
        downward_file(at, &item, errors);
    }
}

/// Files of the downward API are told by the path of the whole.
fn downward_file(at: &Place<'_, '_>, item: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let path = item.field("path").text();
    if path.is_empty() {
        errors.push(at.field("path").required(""));
    }
    local(&at.field("path"), path, errors);
    let (field, resource) = (item.field("fieldRef"), item.field("resourceFieldRef"));
    match (field.exists(), resource.exists()) {
        (true, both) => {
            let mut found = Vec::new();
            values::field_reference(&field, &FIELDS, &mut found);
            errors.extend(found.into_iter().map(|one| moved(one, item, at)));
            if both {
                errors.push(
                    at.invalid_as("resource", "fieldRef and resourceFieldRef can not be specified simultaneously"),
                );
            }
        }
        (false, true) => {
            let mut found = Vec::new();
            values::resource_reference(&resource, true, &mut found);
            errors.extend(found.into_iter().map(|one| moved(one, item, at)));
        }
        (false, false) => errors.push(at.required("one of fieldRef and resourceFieldRef is required")),
    }
    mode(&item.field("mode"), errors);
}

/// The real server names another place than the one where something is wrong.
fn moved(error: Error, from: &Place<'_, '_>, to: &Place<'_, '_>) -> Error {
    Error { field: error.field.replacen(&from.path(), &to.path(), 1), ..error }
}

fn projected(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    mode(&at.field("defaultMode"), errors);
    for one in at.field("sources").items() {
        let mut kinds = 0;
        for kind in
            ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"]
        {
            let place = one.field(kind);
            if !place.exists() {
                continue;
            }
            kinds += 1;
            if kinds > 1 {
                errors.push(place.forbidden("may not specify more than 1 volume type"));
                continue;
            }
            match kind {
                "secret" | "configMap" => {
                    place.field("name").must_be(errors);
                    key_paths(&place.field("items"), errors);
                }
                "downwardAPI" => {
                    for item in place.field("items").items() {
                        downward_file(&place, &item, errors);
                    }
                }
                "serviceAccountToken" => token(at, &place, errors),
                _ => {}
            }
        }
    }
}

fn token(at: &Place<'_, '_>, place: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let seconds = place.field("expirationSeconds");
    if seconds.number().is_some_and(|seconds| seconds < 600) {
        errors.push(seconds.invalid("may not specify a duration less than 10 minutes"));
    }
    if seconds.number().is_some_and(|seconds| seconds > 1 << 32) {
        errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
    }
    let path = place.field("path").text();
    if path.is_empty() {
        errors.push(at.field("path").required(""));
    }
    local(&at.field("path"), path, errors);
}
