// SPDX-License-Identifier: Apache-2.0
//! The server over HTTP or HTTPS, on loopback.

use std::{future::Future, io, sync::Arc};

use http::{Method, Request, Response};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::{ApiServer, Body};

/// Serves until `stop` is done. Requests that run then are cut off: whoever waits for a watch would wait for ever.
pub async fn serve(
    server: ApiServer,
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    if !listener.local_addr()?.ip().is_loopback() {
        let why = "the embedded API server serves loopback only: it is not made for a network";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let acceptor = tls.map(TlsAcceptor::from);
    let mut connections = tokio::task::JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(server.clone(), stream, acceptor.clone()));
                }
                // Out of file descriptors, usually: others will be closed soon.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            () = &mut stop => return Ok(()),
        }
    }
}

async fn connection(server: ApiServer, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
    let _ = stream.set_nodelay(true);
    match acceptor {
        None => exchange(server, stream).await,
        Some(acceptor) => match acceptor.accept(stream).await {
            Ok(stream) => exchange(server, stream).await,
            Err(error) => tracing::debug!(%error, "a client did not finish its TLS handshake"),
        },
    }
}

async fn exchange(server: ApiServer, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let service = service_fn(move |request| answer(server.clone(), request));
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http2().max_concurrent_streams(1_000);
    if let Err(error) = http.serve_connection_with_upgrades(TokioIo::new(stream), service).await {
        tracing::debug!(error = &*error, "a connection ended early");
    }
}

/// Answers one request. A write goes on if its client vanishes: what follows a commit, such as serving a new definition,
/// must not depend on somebody waiting for it.
async fn answer(server: ApiServer, request: Request<Incoming>) -> Result<Response<Body>, tokio::task::JoinError> {
    if request.method() == Method::GET {
        return Ok(server.answer(request).await);
    }
    tokio::spawn(async move { server.answer(request).await }).await
}
