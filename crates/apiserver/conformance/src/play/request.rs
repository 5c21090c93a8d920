// SPDX-License-Identifier: Apache-2.0
//! One request and its answer.

use anyhow::{Context, Result};
use http::{HeaderMap, Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use crate::case::{Step, Who};
use crate::cast::Cast;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    pub warnings: Vec<String>,
    /// JSON where it is JSON, else the text.
    pub body: Value,
}

/// What a step asks for.
pub struct Parts {
    pub method: Method,
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Parts {
    pub fn new(step: &Step, cast: &Cast) -> Result<Self> {
        let request = cast.text(step.request.as_deref().unwrap_or_default());
        let (method, path) = request.split_once(' ').context("a request is a method and a path")?;
        let mut headers = Vec::new();
        let (method, kind) = patch(method).unwrap_or((method, "json"));
        let kind = content_type(step.kind.as_deref().unwrap_or(kind));
        if (step.body.is_some() || step.raw.is_some()) && !kind.is_empty() {
            headers.push(("Content-Type".to_owned(), kind.to_owned()));
        }
        headers.push(("Accept".to_owned(), accept(step.accept.as_deref().unwrap_or("application/json")).to_owned()));
        let (user, groups) = match &step.who {
            None => (None, &[][..]),
            Some(Who::User(user)) => (Some(user), &[][..]),
            Some(Who::Member { user, groups }) => (Some(user), groups.as_slice()),
        };
        headers.extend(user.map(|user| ("Impersonate-User".to_owned(), cast.text(user))));
        headers.extend(groups.iter().map(|group| ("Impersonate-Group".to_owned(), cast.text(group))));
        headers.extend(step.headers.iter().map(|(name, value)| (name.clone(), cast.text(value))));
        let body = match (&step.raw, &step.body) {
            (Some(raw), _) => cast.text(raw),
            (None, Some(body)) => cast.value(body).to_string(),
            (None, None) => String::new(),
        } + &" ".repeat(step.pad);
        Ok(Self { method: method.parse()?, path: path.replace(' ', "%20"), headers, body })
    }

    pub fn headers(&self) -> Vec<(&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }
}

/// Short names for the four kinds of patches.
fn patch(method: &str) -> Option<(&str, &str)> {
    let kind = match method {
        "APPLY" => "apply",
        "MERGE" => "merge",
        "STRATEGIC" => "strategic",
        "JSONPATCH" => "patch",
        _ => return None,
    };
    Some(("PATCH", kind))
}

/// Whether a step's request is a patch, under whatever name.
pub fn is_patch(request: &str) -> bool {
    let method = request.split(' ').next().unwrap_or_default();
    method == "PATCH" || patch(method).is_some()
}

fn content_type(name: &str) -> &str {
    match name {
        "json" => "application/json",
        "yaml" => "application/yaml",
        "merge" => "application/merge-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        "patch" => "application/json-patch+json",
        "none" => "",
        other => other,
    }
}

fn accept(name: &str) -> &str {
    match name {
        "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
        "meta" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "metalist" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "discovery" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        other => other,
    }
}

pub async fn open(client: &Client, parts: Parts) -> Result<Response<Body>> {
    let mut request = Request::builder().method(parts.method.clone()).uri(&parts.path);
    for (name, value) in parts.headers() {
        request = request.header(name, value);
    }
    Ok(client.send(request.body(Body::from(parts.body.into_bytes()))?).await?)
}

pub async fn send(
    client: &Client,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> Result<Answer> {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read(open(client, Parts { method, path: path.to_owned(), headers, body }).await?).await
}

pub async fn read(response: Response<Body>) -> Result<Answer> {
    let mut answer = head(&response);
    let bytes = response.into_body().collect_bytes().await?;
    answer.body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
    Ok(answer)
}

/// All but the body.
pub fn head(response: &Response<Body>) -> Answer {
    let text = |headers: &HeaderMap, name: &str| -> Vec<String> {
        headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    Answer {
        status: response.status().as_u16(),
        content_type: text(response.headers(), "content-type").join(", "),
        warnings: text(response.headers(), "warning"),
        body: Value::Null,
    }
}
