// SPDX-License-Identifier: Apache-2.0
//! The line to a real cloud: HTTPS, with the certificates that this machine trusts.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::wire::{Broken, Line};

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// No price list is larger.
const LARGEST: usize = 64 << 20;

type Sender = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// One for the whole process: connections are kept and shared.
pub fn to_the_world() -> Result<Line, Broken> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let trust = versions.map_err(Broken::before_send)?.with_native_roots().map_err(Broken::before_send)?;
    Ok(through(trust.with_no_client_auth()))
}

/// A line that trusts whom it is told to trust.
pub fn through(tls: rustls::ClientConfig) -> Line {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_WITHIN));
    connector.enforce_http(false);
    let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_all_versions();
    let sender: Sender = Client::builder(TokioExecutor::new()).build(https.wrap_connector(connector));
    Line::new(tower::service_fn(move |request| send(sender.clone(), request)))
}

async fn send(sender: Sender, request: Request<Bytes>) -> Result<Response<Bytes>, Broken> {
    let answer = sender.request(request.map(Full::new)).await.map_err(|error| {
        // A connection that was never made carried nothing. Everything else may have arrived.
        let says = with_causes(&error);
        if error.is_connect() { Broken::before_send(says) } else { Broken::after_send(says) }
    })?;
    let (parts, body) = answer.into_parts();
    let body = Limited::new(body, LARGEST).collect().await;
    let body = body.map_err(|error| Broken::after_send(format!("the answer broke off: {error}")))?;
    Ok(Response::from_parts(parts, body.to_bytes()))
}

/// The first message of a failure to connect says little; what is behind it says why.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut says = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        says = format!("{says}: {cause}");
        next = cause.source();
    }
    says
}
