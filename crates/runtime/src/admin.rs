// SPDX-License-Identifier: Apache-2.0
//! The admin server: `/healthz` says the process lives, `/readyz` what it waits for, `/metrics` how it does.

use std::sync::Arc;

use axum::{
    Router,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{metrics::Metrics, readiness::Readiness};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub fn routes(readiness: Readiness, metrics: Arc<Metrics>) -> Router {
    let ready = move || {
        let waiting = readiness.waiting();
        let answer = if waiting.is_empty() {
            (StatusCode::OK, "ready\n".to_owned())
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, waiting.join("\n") + "\n")
        };
        std::future::ready(answer)
    };
    let metrics = move || std::future::ready(([(CONTENT_TYPE, OPEN_METRICS)], metrics.render()).into_response());
    Router::new()
        .route("/healthz", get(|| std::future::ready("ok\n")))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
}

/// Serves until the token ends.
pub async fn serve(listener: TcpListener, routes: Router, stop: CancellationToken) {
    if let Err(error) = axum::serve(listener, routes).with_graceful_shutdown(stop.cancelled_owned()).await {
        tracing::error!(%error, "the admin server stopped");
    }
}
