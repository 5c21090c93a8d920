// SPDX-License-Identifier: Apache-2.0
//! The world before anything happens: an API server with everything that an installation brings.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bivouac::{cli, print};
use bivouac_apiserver::{ApiServer, Settings, Speaker, User};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::{clock::HostClock, scenario::Reference};

pub const NAMESPACE: &str = "bivouac-system";
pub const ACCOUNT: &str = "bivouac";

/// A server to fork runs from. It is made once: definitions take time to compile.
pub async fn prepare() -> Result<ApiServer> {
    let settings = Settings { clock: Arc::new(HostClock::default()), seed: Some(0), ..Settings::default() };
    let server = ApiServer::start(settings).await.map_err(|status| anyhow::anyhow!("{status:?}"))?;
    let admin = server.speaking_as(User::admin());
    let crds = bivouac_api::crds().iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
    let rbac = print::rbac_objects(&cli::RbacOptions {
        print: cli::PrintOptions { output: cli::Output::Json },
        controllers: "*".to_owned(),
        namespace: NAMESPACE.to_owned(),
        service_account: ACCOUNT.to_owned(),
    })?;
    let policies = print::policy_objects(&cli::PolicyOptions {
        print: cli::PrintOptions { output: cli::Output::Json },
        namespace: NAMESPACE.to_owned(),
        service_account: ACCOUNT.to_owned(),
        without_mutating: false,
    })?;
    #[cfg(feature = "planted")]
    let crds = crds.into_iter().chain([crate::planted::crd()?]);
    for object in crds.into_iter().chain([namespace]).chain(rbac).chain(policies) {
        apply(&admin, &object).await?;
    }
    // Runs do not look behind their beginning.
    server.store().compact(server.store().revision());
    Ok(server)
}

/// Who the operator is to the API server.
pub fn operator(is_planted: bool) -> User {
    if is_planted {
        return User::admin();
    }
    let groups = ["system:serviceaccounts", "system:serviceaccounts:bivouac-system", "system:authenticated"];
    User {
        name: format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}"),
        groups: groups.map(str::to_owned).to_vec(),
        ..User::default()
    }
}

pub async fn apply(server: &Speaker, object: &Value) -> Result<()> {
    let of = Reference::of(object);
    let path = format!("{}?fieldManager=scenario&force=true", of.path());
    let (code, answer) = ask(server, Method::PATCH, &path, "application/apply-patch+yaml", object).await?;
    ensure!(code.is_success(), "{} {} is refused: {}", of.kind, of.name, message(&answer));
    Ok(())
}

pub async fn patch(server: &Speaker, of: &Reference, patch: &Value) -> Result<()> {
    let (code, answer) = ask(server, Method::PATCH, &of.path(), "application/merge-patch+json", patch).await?;
    ensure!(code.is_success(), "the patch of {} {} is refused: {}", of.kind, of.name, message(&answer));
    Ok(())
}

pub async fn delete(server: &Speaker, of: &Reference) -> Result<()> {
    let (code, answer) = ask(server, Method::DELETE, &of.path(), "application/json", &Value::Null).await?;
    ensure!(code.is_success(), "the deletion of {} {} is refused: {}", of.kind, of.name, message(&answer));
    Ok(())
}

pub async fn get(server: &Speaker, of: &Reference) -> Result<Option<Value>> {
    let (code, answer) = ask(server, Method::GET, &of.path(), "application/json", &Value::Null).await?;
    ensure!(code.is_success() || code == StatusCode::NOT_FOUND, "{} {}: {}", of.kind, of.name, message(&answer));
    Ok(code.is_success().then_some(answer))
}

pub async fn ask(
    server: &Speaker,
    method: Method,
    path: &str,
    content: &str,
    body: &Value,
) -> Result<(StatusCode, Value)> {
    let text = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let request = Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, content);
    let response = server.answer(request.body(Full::new(text)).context("a request that cannot be made")?).await;
    let code = response.status();
    let read = response.into_body().collect().await?.to_bytes();
    Ok((code, serde_json::from_slice(&read).unwrap_or_default()))
}

fn message(answer: &Value) -> &str {
    answer.get("message").and_then(Value::as_str).unwrap_or_default()
}
