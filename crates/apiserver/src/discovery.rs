// SPDX-License-Identifier: Apache-2.0
//! Documents about the server: what it serves, its version, its health.

use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    access::{User, tokens},
    answer::{Answer, to_bytes},
    object::set,
    openapi,
    registry::{Group, Registry, Resource, join},
    request::{
        Document,
        accept::{Accepted, Form, Unacceptable},
    },
    server::Inner,
    status::Status,
};

/// The version of Kubernetes that this server imitates.
pub const VERSION: &str = "v1.36.3";

pub fn answer(
    server: &Inner,
    _user: &User,
    document: &Document,
    head: &http::request::Parts,
    accepted: Result<Accepted, Unacceptable>,
) -> Result<Answer, Status> {
    let registry = server.registry();
    let aggregated = matches!(accepted, Ok(Accepted { form: Form::GroupDiscovery, .. }));
    if aggregated
        && let Some(core) = match document {
            Document::CoreVersions => Some(true),
            Document::Groups => Some(false),
            _ => None,
        }
    {
        let body = registry.kept(core, || to_bytes(&group_list(&registry, |group| group.name.is_empty() == core)));
        // Clients take the form from the content type.
        let content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        return Ok(Answer::Raw { content_type, body });
    }
    let body = match document {
        Document::CoreVersions => json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        }),
        Document::Groups => {
            let groups: Vec<Value> =
                registry.groups().iter().filter(|group| !group.name.is_empty()).map(group_document).collect();
            json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
        }
        Document::Group(name) => match registry.group(name) {
            Some(group) => {
                let mut document = group_document(group);
                set(&mut document, "kind", "APIGroup");
                set(&mut document, "apiVersion", "v1");
                document
            }
            None => return Ok(Answer::Absent),
        },
        Document::GroupVersion { group, version } => match resources(&registry, group, version) {
            Some(document) => document,
            None if registry.group(group).is_some() => return Err(crate::call::not_served()),
            None => return Ok(Answer::Absent),
        },
        Document::Index => index(&registry),
        Document::Metrics => {
            let body = crate::metrics::text(server).into();
            return Ok(Answer::Raw { content_type: "text/plain; version=0.0.4; charset=utf-8", body });
        }
        Document::Version => version(),
        Document::OpenId => {
            let host = head.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
            tokens::discovery(&format!("https://{}", host.unwrap_or("kubernetes.default.svc")))
        }
        Document::Jwks => server.access.signer.keys(),
        Document::OpenApiV3 => openapi::index(&registry),
        Document::OpenApiV3Group(path) => match openapi::document(&registry, path) {
            Some(document) => document,
            None => return Ok(Answer::Absent),
        },
        Document::OpenApiV2 => openapi::document_v2(&registry),
        Document::Health(_) => return Ok(Answer::Text { code: StatusCode::OK, body: "ok".into() }),
    };
    if matches!(document, Document::OpenApiV3) {
        return Ok(Answer::Raw { content_type: "text/plain; charset=utf-8", body: to_bytes(&body) });
    }
    Ok(Answer::Document { code: StatusCode::OK, body })
}

/// Where there is something to read.
fn index(registry: &Registry) -> Value {
    let mut paths: Vec<String> =
        ["/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            .map(str::to_owned)
            .into();
    for group in registry.groups() {
        let root = if group.name.is_empty() { "/api".to_owned() } else { format!("/apis/{}", group.name) };
        paths.extend(group.versions.iter().map(|version| format!("{root}/{version}")));
        if !group.name.is_empty() {
            paths.push(root);
        }
    }
    paths.sort();
    json!({ "paths": paths })
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": VERSION,
        "gitCommit": "",
        "gitTreeState": "archive",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "bivouac",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

fn group_document(group: &Group) -> Value {
    let version = |version: &str| json!({ "groupVersion": join(&group.name, version), "version": version });
    let versions: Vec<Value> = group.versions.iter().map(|one| version(one)).collect();
    let preferred = group.versions.first().map(|one| version(one));
    json!({ "name": &*group.name, "versions": versions, "preferredVersion": preferred })
}

fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    for resource in registry.version(group, version) {
        list.push(resource_document(resource));
        list.extend(resource.subresources.iter().map(|part| {
            let mut document = json!({
                "name": format!("{}/{}", resource.plural, part.name),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": &*part.kind,
                "verbs": part.verbs.iter().map(|verb| &**verb).collect::<Vec<_>>(),
            });
            if !part.version.is_empty() {
                set(&mut document, "group", part.group.as_ref());
                set(&mut document, "version", part.version.as_ref());
            }
            document
        }));
    }
    if list.is_empty() {
        return None;
    }
    let mut document = json!({ "kind": "APIResourceList", "groupVersion": join(group, version), "resources": list });
    if !group.is_empty() {
        set(&mut document, "apiVersion", "v1");
    }
    Some(document)
}

fn texts(list: &[Box<str>]) -> Value {
    list.iter().map(|one| &**one).collect()
}

fn resource_document(resource: &Resource) -> Value {
    let mut document = json!({
        "name": &*resource.plural,
        "singularName": &*resource.singular,
        "namespaced": resource.namespaced,
        "kind": &*resource.kind,
        "verbs": texts(&resource.verbs),
    });
    if !resource.short_names.is_empty() && !fault!(ShortNamesMissing) {
        set(&mut document, "shortNames", texts(&resource.short_names));
    }
    if !resource.categories.is_empty() {
        set(&mut document, "categories", texts(&resource.categories));
    }
    if let Some(hash) = &resource.storage_version_hash {
        set(&mut document, "storageVersionHash", hash.as_ref());
    }
    document
}

fn group_list(registry: &Registry, wanted: impl Fn(&Group) -> bool) -> Value {
    let groups: Vec<Value> =
        registry.groups().iter().filter(|group| wanted(group)).map(|group| group_discovery(registry, group)).collect();
    json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups })
}

fn group_discovery(registry: &Registry, group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let resources: Vec<Value> =
                registry.version(&group.name, version).map(|one| resource_discovery(one)).collect();
            json!({ "version": &**version, "resources": resources, "freshness": "Current" })
        })
        .collect();
    let metadata = if group.name.is_empty() { json!({}) } else { json!({ "name": &*group.name }) };
    json!({ "metadata": metadata, "versions": versions })
}

fn resource_discovery(resource: &Resource) -> Value {
    let mut document = json!({
        "resource": &*resource.plural,
        "responseKind": response_kind(resource, "", "", &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": &*resource.singular,
        "verbs": texts(&resource.verbs),
    });
    if !resource.short_names.is_empty() && !fault!(ShortNamesMissing) {
        set(&mut document, "shortNames", texts(&resource.short_names));
    }
    if !resource.categories.is_empty() {
        set(&mut document, "categories", texts(&resource.categories));
    }
    if !resource.subresources.is_empty() {
        let parts = resource.subresources.iter().map(|part| {
            let kind = response_kind(resource, &part.group, &part.version, &part.kind);
            json!({ "subresource": &*part.name, "responseKind": kind, "verbs": texts(&part.verbs) })
        });
        set(&mut document, "subresources", parts.collect::<Value>());
    }
    document
}

/// The real server leaves out group and version of its own kinds where they are those of the document.
fn response_kind(resource: &Resource, group: &str, version: &str, kind: &str) -> Value {
    let (group, version) = match (version.is_empty(), resource.custom()) {
        (true, Some(_)) => (&*resource.group, &*resource.version),
        _ => (group, version),
    };
    json!({ "group": group, "version": version, "kind": kind })
}
