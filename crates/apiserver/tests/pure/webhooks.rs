// SPDX-License-Identifier: Apache-2.0
//! Webhooks over HTTPS: what they change, what they refuse, and what happens when nobody answers.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bivouac_apiserver::{ApiServer, Settings};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpListener;

async fn send(server: &ApiServer, method: Method, path: &str, body: &Value) -> (u16, Value, Vec<String>) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let response = server.answer(request.body(Full::new(Bytes::from(body.to_string()))).unwrap()).await;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter().map(|one| one.to_str().unwrap().to_owned()).collect();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default(), warnings)
}

/// A webhook that labels objects, and refuses those named `bad`. The answer is its address and its certificate.
async fn webhook() -> (String, String) {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = hyper::service::service_fn(answer);
                let http = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                let _ = http.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (format!("https://localhost:{port}"), BASE64.encode(own.cert.pem()))
}

async fn answer<B: http_body::Body>(request: Request<B>) -> Result<Response<Full<Bytes>>, std::convert::Infallible>
where
    B::Error: std::fmt::Debug,
{
    let mutates = request.uri().path() == "/label";
    let review: Value = serde_json::from_slice(&request.into_body().collect().await.unwrap().to_bytes()).unwrap();
    let request = &review["request"];
    assert_eq!(request["userInfo"]["username"], "admin");
    let mut response = json!({ "uid": request["uid"], "allowed": true });
    if mutates {
        let steps = json!([{ "op": "add", "path": "/metadata/labels", "value": { "seen": request["operation"] } }]);
        response["patchType"] = "JSONPatch".into();
        response["patch"] = BASE64.encode(steps.to_string()).into();
        response["warnings"] = json!(["labelled"]);
    } else if request["name"] == "bad" {
        response["allowed"] = false.into();
        response["status"] = json!({ "message": "it is bad", "code": 403, "reason": "Forbidden" });
    }
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response });
    Ok(Response::new(Full::new(Bytes::from(review.to_string()))))
}

fn configuration(kind: &str, url: &str, bundle: &str, failure: &str) -> Value {
    let rule =
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": { "name": "test" },
        "webhooks": [{
            "name": "hook.example.com",
            "rules": [rule],
            "clientConfig": { "url": url, "caBundle": bundle },
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": failure,
        }],
    })
}

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn register(server: &ApiServer, kind: &str, url: &str, bundle: &str, failure: &str) {
    let path = format!("{REGISTRATION}/{}s", kind.to_lowercase());
    let (code, answer, _) = send(server, Method::POST, &path, &configuration(kind, url, bundle, failure)).await;
    assert_eq!(code, 201, "{answer}");
}

#[tokio::test]
async fn a_webhook_changes_and_refuses() {
    let server = ApiServer::start(Settings::default()).await.unwrap();
    let (url, bundle) = webhook().await;
    register(&server, "MutatingWebhookConfiguration", &format!("{url}/label"), &bundle, "Fail").await;
    register(&server, "ValidatingWebhookConfiguration", &format!("{url}/judge"), &bundle, "Fail").await;

    let (code, answer, warnings) =
        send(&server, Method::POST, CONFIGMAPS, &json!({ "metadata": { "name": "good" } })).await;
    assert_eq!((code, &answer["metadata"]["labels"]), (201, &json!({ "seen": "CREATE" })), "{answer}");
    assert_eq!(warnings, ["299 - \"labelled\""]);

    let (code, answer, _) = send(&server, Method::POST, CONFIGMAPS, &json!({ "metadata": { "name": "bad" } })).await;
    let expected = "admission webhook \"hook.example.com\" denied the request: it is bad";
    assert_eq!((code, answer["message"].as_str().unwrap()), (403, expected));
    // Other resources do not pass by.
    let (code, ..) =
        send(&server, Method::POST, "/api/v1/namespaces/default/secrets", &json!({ "metadata": { "name": "bad" } }))
            .await;
    assert_eq!(code, 201);
}

#[tokio::test]
async fn a_webhook_that_is_not_there_refuses_or_is_ignored() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for (failure, expected) in [("Fail", 500), ("Ignore", 201)] {
        let server = ApiServer::start(Settings::default()).await.unwrap();
        register(&server, "ValidatingWebhookConfiguration", &format!("https://{nobody}/"), "", failure).await;
        let (code, answer, _) = send(&server, Method::POST, CONFIGMAPS, &json!({ "metadata": { "name": "a" } })).await;
        assert_eq!(code, expected, "{answer}");
    }
}

#[tokio::test]
async fn a_webhook_whose_certificate_nobody_vouches_for_is_not_believed() {
    let server = ApiServer::start(Settings::default()).await.unwrap();
    let (url, _) = webhook().await;
    register(&server, "ValidatingWebhookConfiguration", &url, "", "Fail").await;
    let (code, answer, _) = send(&server, Method::POST, CONFIGMAPS, &json!({ "metadata": { "name": "a" } })).await;
    assert_eq!(code, 500, "{answer}");
}
