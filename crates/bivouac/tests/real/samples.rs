// SPDX-License-Identifier: Apache-2.0
//! Every sample of the original systems is created on a real API server that has our CRDs and policies. What the server
//! warns about is explained, line by line, in `sample-warnings.txt`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use bivouac_testenv::{Options, TestCluster};
use http::Request;
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    client::Body,
};
use serde_json::{Value, json};

use crate::install;

const EXPLAINED: &str = include_str!("sample-warnings.txt");

#[tokio::test]
async fn every_sample_is_accepted_and_every_warning_is_explained() {
    let Some(samples) = samples() else {
        println!("NOT RUN: contracts absent");
        return;
    };
    let cluster = TestCluster::start(Options { without: vec!["kwok".into()], ..Options::default() }).await.unwrap();
    let crds = bivouac_api::crds();
    cluster.install_crds(&crds).await.unwrap();
    install::policies(&cluster.client()).await;
    let (mut accepted, mut warnings) = (0, BTreeSet::new());
    for (file, object) in samples {
        let Some(place) = Place::of(&object, &crds) else { continue };
        let heard = create(&cluster.client(), &place, object).await.unwrap_or_else(|error| panic!("{file}: {error}"));
        warnings.extend(heard.into_iter().map(|warning| format!("{file}: {warning}")));
        accepted += 1;
    }
    println!("{accepted} samples accepted, {} warnings", warnings.len());
    assert!(accepted > 80, "only {accepted} samples were found");
    let explained: BTreeSet<String> = EXPLAINED
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split_once("  # ").unwrap_or_else(|| panic!("no reason given: {line}")).0.to_owned())
        .collect();
    assert_eq!(warnings, explained, "left: heard; right: explained in sample-warnings.txt");
}

/// Where objects of a kind are created.
struct Place {
    path: String,
    namespace: Option<String>,
}

impl Place {
    /// `None` for kinds that are not ours: the originals' examples hold some ConfigMaps and the like.
    fn of(object: &Value, crds: &[CustomResourceDefinition]) -> Option<Self> {
        let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
        let crd = crds.iter().find(|crd| crd.spec.group == group && object["kind"] == *crd.spec.names.kind)?;
        let plural = &crd.spec.names.plural;
        if crd.spec.scope == "Cluster" {
            return Some(Self { path: format!("/apis/{group}/{version}/{plural}"), namespace: None });
        }
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("samples").to_owned();
        let path = format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}");
        Some(Self { path, namespace: Some(namespace) })
    }
}

/// Creates the object, takes it away again, and returns what the server warned about.
async fn create(client: &Client, place: &Place, object: Value) -> Result<Vec<String>, String> {
    if let Some(namespace) = &place.namespace {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let api = Api::<Namespace>::all(client.clone());
        api.patch(namespace, &PatchParams::apply("samples"), &Patch::Apply(&body)).await.map_err(|e| e.to_string())?;
    }
    let uri = format!("{}?fieldValidation=Warn&fieldManager=samples", place.path);
    let request = Request::post(uri).header("content-type", "application/json");
    let request = request.body(Body::from(object.to_string().into_bytes())).map_err(|e| e.to_string())?;
    let response = client.send(request).await.map_err(|e| e.to_string())?;
    let (parts, body) = response.into_parts();
    let bytes = body.collect_bytes().await.map_err(|e| e.to_string())?;
    let answer: Value = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
    if parts.status != 201 {
        return Err(format!("{} {}", parts.status, answer["message"]));
    }
    let delete = Request::delete(format!("{}/{}", place.path, answer["metadata"]["name"].as_str().unwrap_or_default()));
    client.send(delete.body(Body::empty()).map_err(|e| e.to_string())?).await.map_err(|e| e.to_string())?;
    let headers = parts.headers.get_all("warning").iter().filter_map(|header| header.to_str().ok());
    // 299 - "the text"
    let text = |header: &str| Some(header.split_once('"')?.1.strip_suffix('"')?.replace("\\\"", "\""));
    Ok(headers.filter_map(text).collect())
}

/// All objects of all sample files, as (project/file, object), with the upstream tests' placeholders filled in.
fn samples() -> Option<Vec<(String, Value)>> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("BIVOUAC_SHARED").map_or(default, PathBuf::from);
    let root = shared.join("contracts/samples");
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for project in std::fs::read_dir(root).ok()?.flatten() {
        for file in std::fs::read_dir(project.path()).ok()?.flatten() {
            let name = format!("{}/{}", project.file_name().display(), file.file_name().display());
            files.insert(name, file.path());
        }
    }
    let mut objects = Vec::new();
    for (name, path) in files {
        let text = filled(&std::fs::read_to_string(path).unwrap());
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        objects.extend(documents.into_iter().filter(Value::is_object).map(|object| (name.clone(), object)));
    }
    Some(objects)
}

/// `${NS}` and the like become a word that is a valid name.
fn filled(text: &str) -> String {
    let mut parts = text.split("${");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, rest) = part.split_once('}').unwrap_or((part, ""));
        filled.push_str("sample");
        filled.push_str(rest);
    }
    filled
}
