// SPDX-License-Identifier: Apache-2.0
//! What the real API server says of itself: OpenAPI, discovery and the columns of its tables.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use bivouac_apiserver::builtin::{Column, Resource, Subresource};
use http::Method;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

pub struct Server(Client);

impl Server {
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    async fn get(&self, path: &str, accept: &str) -> Result<Value> {
        let request = http::Request::get(path).header("Accept", accept).body(Vec::new())?;
        self.0.request(request).await.with_context(|| path.to_owned())
    }

    pub async fn version(&self) -> Result<String> {
        Ok(text(&self.get("/version", "application/json").await?, "gitVersion").into())
    }

    /// Every definition by its name.
    pub async fn definitions(&self) -> Result<BTreeMap<String, Value>> {
        let index = self.get("/openapi/v3", "application/json").await?;
        let mut all = BTreeMap::new();
        for place in index.pointer("/paths").and_then(Value::as_object).into_iter().flat_map(|paths| paths.values()) {
            let part = self.get(text(place, "serverRelativeURL"), "application/json").await?;
            let schemas = part.pointer("/components/schemas").and_then(Value::as_object).cloned();
            // The same definition in another part differs at most in the list of groups it belongs to.
            all.extend(schemas.unwrap_or_default());
        }
        Ok(all)
    }

    /// Every resource, in the order of discovery.
    pub async fn resources(&self) -> Result<Vec<Resource>> {
        let mut all = Vec::new();
        for (root, prefix) in [("/api", "/api"), ("/apis", "/apis/")] {
            let groups = self.get(root, AGGREGATED).await?;
            for group in list(&groups, "items") {
                let name = group.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                for (index, version) in list(group, "versions").iter().enumerate() {
                    let base = format!("{prefix}{name}/{}", text(version, "version"));
                    let hashes = self.hashes(&base).await?;
                    for found in list(version, "resources") {
                        let mut resource = resource(name, text(version, "version"), index == 0, found);
                        resource.storage_version_hash = hashes.get(&*resource.plural).map(|it| it.as_str().into());
                        if resource.verbs.iter().any(|verb| **verb == *"list") {
                            resource.columns = self.columns(&format!("{base}/{}", resource.plural)).await?;
                        }
                        all.push(resource);
                    }
                }
            }
        }
        Ok(all)
    }

    /// Only the older form of discovery has them.
    async fn hashes(&self, base: &str) -> Result<BTreeMap<String, String>> {
        let found = self.get(base, "application/json").await?;
        let hash =
            |one: &Value| Some((text(one, "name").to_owned(), one.get("storageVersionHash")?.as_str()?.to_owned()));
        Ok(list(&found, "resources").iter().filter_map(hash).collect())
    }

    async fn columns(&self, path: &str) -> Result<Vec<Column>> {
        let mut table = self.get(path, TABLE).await?;
        let columns = table.get_mut("columnDefinitions").map(Value::take).unwrap_or_default();
        serde_json::from_value(columns).with_context(|| format!("the columns of {path}"))
    }

    /// What the server makes of this object; `Err` has its answer when it refuses.
    pub async fn write(
        &self,
        method: Method,
        path: &str,
        object: &Value,
    ) -> Result<std::result::Result<Value, String>> {
        let request = http::Request::builder().method(method).uri(path).header("Content-Type", "application/json");
        // Some zero values make the server panic, which closes the connection: also a refusal.
        let answer = match self.0.send(request.body(Body::from(serde_json::to_vec(object)?))?).await {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let good = answer.status().is_success();
        let body = answer.into_body().collect_bytes().await?;
        let value: Value = serde_json::from_slice(&body)?;
        Ok(if good { Ok(value) } else { Err(text(&value, "message").to_owned()) })
    }
}

fn resource(group: &str, version: &str, preferred: bool, found: &Value) -> Resource {
    let subresource = |one: &Value| {
        let kind =
            |name| one.pointer(&format!("/responseKind/{name}")).and_then(Value::as_str).unwrap_or_default().into();
        let verbs = words(one, "verbs");
        Subresource {
            name: text(one, "subresource").into(),
            kind: kind("kind"),
            group: kind("group"),
            version: kind("version"),
            verbs,
        }
    };
    Resource {
        group: group.into(),
        version: version.into(),
        preferred,
        plural: text(found, "resource").into(),
        singular: text(found, "singularResource").into(),
        kind: found.pointer("/responseKind/kind").and_then(Value::as_str).unwrap_or_default().into(),
        namespaced: text(found, "scope") == "Namespaced",
        short_names: words(found, "shortNames"),
        categories: words(found, "categories"),
        verbs: words(found, "verbs"),
        storage_version_hash: None,
        subresources: list(found, "subresources").iter().map(subresource).collect(),
        columns: Vec::new(),
        root: bivouac_apiserver::schema::TypeId(u32::MAX),
    }
}

pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn words(value: &Value, name: &str) -> Vec<Box<str>> {
    list(value, name).iter().filter_map(Value::as_str).map(Into::into).collect()
}
