// SPDX-License-Identifier: Apache-2.0
//! Webhooks: somebody outside who looks at a write over HTTP.

use std::{io::ErrorKind, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use kube_cel::cel::Value as Cel;
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use serde_json::{Value, json};

use super::{
    Operation, Review, look,
    policy::{self, Hook, Registered, matching},
};
use crate::{call::Call, decode, object::text, patch, status::Status};

/// The longest answer that is read.
const LONGEST: usize = 3 * 1024 * 1024;
const TIMEOUT: u64 = 10;

/// Lets webhooks change the object. The answer is whether one did.
pub async fn mutate(
    call: &mut Call,
    review: &mut Review<'_>,
    registered: &Registered,
    again: bool,
) -> Result<bool, Status> {
    let mut changed = false;
    for hook in &registered.mutating_hooks {
        if again && text(&hook.spec, "/reinvocationPolicy") != "IfNeeded" || !wanted(call, review, hook)? {
            continue;
        }
        let Some(response) = ask(call, review, hook).await? else { continue };
        let steps = match response.get("patch").and_then(Value::as_str) {
            None | Some("") => continue,
            Some(text) => BASE64.decode(text).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok()),
        };
        let failed = |why: String| Status::internal(format!("failed calling webhook {:?}: {why}", hook.name));
        let steps = steps.ok_or_else(|| failed("the patch is no JSON in base64".into()))?;
        let Some(object) = review.object_mut() else { continue };
        let mut new = patch::json(object.clone(), &steps, false).map_err(|error| failed(error.to_string()))?;
        decode::fill(&call.resource, &mut new);
        changed |= *object != new;
        *object = new;
    }
    Ok(changed)
}

/// Lets webhooks refuse the write.
pub async fn validate(call: &mut Call, review: &Review<'_>, registered: &Registered) -> Result<(), Status> {
    for hook in &registered.validating_hooks {
        if wanted(call, review, hook)? {
            ask(call, review, hook).await?;
        }
    }
    Ok(())
}

fn fails(hook: &Hook) -> bool {
    text(&hook.spec, "/failurePolicy") != "Ignore"
}

fn seconds(hook: &Hook) -> u64 {
    hook.spec.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(TIMEOUT)
}

/// Whether the webhook is about this request.
fn wanted(call: &Call, review: &Review<'_>, hook: &Hook) -> Result<bool, Status> {
    let has_rules = hook.spec.get("rules").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    if policy::is_exempt(&call.resource) || !has_rules || !matching::matches(call, review, &hook.spec, "rules") {
        return Ok(false);
    }
    if !hook.conditions.is_empty() {
        let all = policy::variables(call, review, None);
        for (_, condition) in &hook.conditions {
            match condition.evaluate(&all) {
                Ok(Cel::Bool(true)) => {}
                Ok(Cel::Bool(false)) => return Ok(false),
                _ if !fails(hook) => return Ok(false),
                Ok(_) | Err(_) => {
                    let why = format!("failed to evaluate the match conditions of webhook {:?}", hook.name);
                    return Err(review.forbidden(call, why));
                }
            }
        }
    }
    let harmless = matches!(text(&hook.spec, "/sideEffects"), "None" | "NoneOnDryRun");
    if call.options.is_dry_run() && !harmless {
        let why = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(Status::bad_request(why));
    }
    Ok(true)
}

/// Asks one webhook. Nothing means that it could not be reached and need not be.
async fn ask(call: &mut Call, review: &Review<'_>, hook: &Hook) -> Result<Option<Value>, Status> {
    let uid = call.server.uid();
    let body = question(call, review, &uid);
    let outcome = match tokio::time::timeout(Duration::from_secs(seconds(hook)), send(call, hook, &body)).await {
        Ok(outcome) => outcome,
        Err(_) => Err("context deadline exceeded".to_owned()),
    };
    let outcome = outcome.and_then(|answer| match text(&answer, "/response/uid") {
        found if found == uid => Ok(answer.get("response").cloned().unwrap_or_default()),
        found => Err(format!("expected response.uid={uid:?}, got {found:?}")),
    });
    let response = match outcome {
        Ok(response) => response,
        Err(_) if !fails(hook) => return Ok(None),
        Err(why) => {
            let why = format!("failed calling webhook {:?}: failed to call webhook: {why}", hook.name);
            return Err(Status::internal(why));
        }
    };
    let warnings = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
    call.warnings.extend(warnings.filter_map(Value::as_str).map(str::to_owned));
    if response.get("allowed").and_then(Value::as_bool).unwrap_or_default() {
        return Ok(Some(response));
    }
    Err(denied(hook, response.get("status").unwrap_or(&Value::Null)))
}

fn denied(hook: &Hook, status: &Value) -> Status {
    let by = format!("admission webhook {:?} denied the request", hook.name);
    let (message, reason) = (text(status, "/message"), text(status, "/reason"));
    let message = match (message, reason) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code = status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()).unwrap_or_default();
    // A refusal is never a success.
    let code = StatusCode::from_u16(code.max(400)).unwrap_or(StatusCode::BAD_REQUEST);
    Status::new(code, reason, message)
}

fn question(call: &Call, review: &Review<'_>, uid: &str) -> Value {
    let mut request = policy::request(call, review);
    if let Some(map) = request.as_object_mut() {
        map.insert("uid".into(), uid.into());
        map.insert("object".into(), review.object().cloned().unwrap_or_default());
        map.insert("oldObject".into(), review.old.cloned().unwrap_or_default());
        if review.operation == Operation::Create && review.name.is_empty() {
            map.remove("name");
        }
    }
    json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request })
}

/// Where the webhook is. A service is reached at its address.
fn address(call: &Call, hook: &Hook) -> Result<String, String> {
    let url = text(&hook.spec, "/clientConfig/url");
    if !url.is_empty() {
        return Ok(url.to_owned());
    }
    let at = |field: &str| text(&hook.spec, &format!("/clientConfig/service/{field}")).to_owned();
    let (namespace, name, path) = (at("namespace"), at("name"), at("path"));
    let port = hook.spec.pointer("/clientConfig/service/port").and_then(Value::as_u64).unwrap_or(443);
    let service = look(&call.server, "", "services", &format!("{namespace}/{name}"));
    let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
    match text(&service, "/spec/clusterIP") {
        "" | "None" => Err(format!("service {name:?} has no address")),
        ip => Ok(format!("https://{ip}:{port}/{}", path.trim_start_matches('/'))),
    }
}

async fn send(call: &Call, hook: &Hook, body: &Value) -> Result<Value, String> {
    let address = address(call, hook)?;
    let address = format!("{address}{}timeout={}s", if address.contains('?') { '&' } else { '?' }, seconds(hook));
    let request = Request::post(&address)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .map_err(|error| error.to_string())?;
    let connector = HttpsConnectorBuilder::new().with_tls_config(trust(hook)?).https_or_http().enable_http1().build();
    let client = Client::builder(TokioExecutor::new()).build::<_, Full<Bytes>>(connector);
    let uri = request.uri().clone();
    let response =
        client.request(request).await.map_err(|error| format!("Post {address:?}: {}", root(&error, &uri)))?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("an error on the server ({status}) has prevented the request from succeeding"));
    }
    let body = Limited::new(response.into_body(), LONGEST).collect().await.map_err(|error| error.to_string())?;
    serde_json::from_slice(&body.to_bytes()).map_err(|error| error.to_string())
}

/// What lies at the bottom of an error, in Go's words where it is that nobody listens.
fn root(error: &(dyn std::error::Error + 'static), address: &Uri) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    let refused =
        error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    if refused {
        let (host, port) = (address.host().unwrap_or_default(), address.port_u16().unwrap_or(443));
        return format!("dial tcp {host}:{port}: connect: connection refused");
    }
    error.to_string()
}

/// Trusts whom the webhook's own bundle names.
fn trust(hook: &Hook) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let bundle = text(&hook.spec, "/clientConfig/caBundle");
    let pem = BASE64.decode(bundle).map_err(|error| format!("the caBundle is not base64: {error}"))?;
    for certificate in certificates(&pem) {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(config.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth())
}

fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    use rustls::pki_types::pem::PemObject;
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect()
}
