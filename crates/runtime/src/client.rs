// SPDX-License-Identifier: Apache-2.0
//! The connection to the API server: HTTP/2, so that a whole operator fits on one connection.

use std::time::Duration;

use http::{HeaderValue, Request, header::USER_AGENT};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as Http, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ConfigExt, retry::RetryPolicy},
};
use rustls::pki_types::ServerName;
use tower::{BoxError, ServiceBuilder, retry::RetryLayer};

/// A dead connection is noticed within the sum of these, well inside the lease time.
const PING_EVERY: Duration = Duration::from_secs(5);
const PING_PATIENCE: Duration = Duration::from_secs(5);

/// What the server may send on one stream, and on all of them, before we have read any of it. Watches and answers share the
/// connection: where they must wait for each other, the server ends a watch as too slow.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// Why no client could be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("no cluster is configured: set KUBECONFIG or pass --kubeconfig, or run inside a cluster ({0})")]
    NoConfig(String),
    #[error("the kubeconfig cannot be used: {0}")]
    BadConfig(#[from] kube::Error),
    #[error("the kubeconfig names the TLS server {0:?}, which is no valid server name")]
    BadServerName(String),
}

/// The configuration a person expects: the given file, KUBECONFIG, the default file, or the pod's own account.
pub async fn config(kubeconfig: Option<&std::path::Path>) -> Result<Config, ConnectError> {
    let Some(path) = kubeconfig else {
        return Config::infer().await.map_err(|error| ConnectError::NoConfig(error.to_string()));
    };
    let wrong = |error: kube::config::KubeconfigError| ConnectError::NoConfig(format!("{}: {error}", path.display()));
    let file = kube::config::Kubeconfig::read_from(path).map_err(wrong)?;
    Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default()).await.map_err(wrong)
}

/// A client that names itself `agent` in the server's audit log.
pub fn connect(config: Config, agent: &str) -> Result<Client, ConnectError> {
    if config.proxy_url.is_some() {
        // Proxies are kube's business; it speaks HTTP/1.1 through them.
        return Ok(Client::try_from(config)?);
    }
    let builder = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    let builder = match &config.tls_server_name {
        Some(name) => {
            let server = ServerName::try_from(name.clone()).map_err(|_| ConnectError::BadServerName(name.clone()))?;
            builder.with_server_name_resolver(FixedServerNameResolver::new(server))
        }
        None => builder,
    };
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    let http: Http<_, Body> = Http::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_EVERY)
        .http2_keep_alive_timeout(PING_PATIENCE)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(builder.enable_all_versions().wrap_connector(tcp));

    let agent = HeaderValue::from_str(agent).unwrap_or(HeaderValue::from_static("bivouac"));
    let named = move |mut request: Request<Body>| {
        request.headers_mut().insert(USER_AGENT, agent.clone());
        request
    };
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(config.extra_headers_layer()?)
        .map_request(named)
        .layer(RetryLayer::new(RetryPolicy::server_retry()))
        .option_layer(config.auth_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}
