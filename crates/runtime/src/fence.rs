// SPDX-License-Identifier: Apache-2.0
//! No write without the lease. The fence stands in the client itself, so no controller can forget it.

use std::{
    sync::{Arc, PoisonError, RwLock},
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use tokio::time::Instant;
use tower::{BoxError, Service};

/// Until when writes may be sent. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Fence(Arc<RwLock<Open>>);

#[derive(Clone, Copy, Debug)]
enum Open {
    Always,
    Until(Instant),
}

/// The write was not sent, because this process is not the leader (any more).
#[derive(Debug, thiserror::Error)]
#[error("this process does not hold the lease, so it must not write")]
pub struct Fenced;

impl Fence {
    /// A fence that lets everything pass, for a process that is alone by construction.
    pub fn open() -> Self {
        Self(Arc::new(RwLock::new(Open::Always)))
    }

    /// A fence that stays shut until [`Fence::extend`].
    pub fn shut() -> Self {
        Self(Arc::new(RwLock::new(Open::Until(Instant::now()))))
    }

    pub fn extend(&self, until: Instant) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Open::Until(until);
    }

    pub fn close(&self) {
        self.extend(Instant::now());
    }

    /// `None`: shut. Otherwise when an answer must have arrived.
    fn deadline(&self) -> Option<Option<Instant>> {
        match *self.0.read().unwrap_or_else(PoisonError::into_inner) {
            Open::Always => Some(None),
            Open::Until(until) => (Instant::now() < until).then_some(Some(until)),
        }
    }

    /// The same client, but writes pass only while the fence is open and are given up when it closes.
    pub fn guard(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        Client::new(FencedClient { client, fence: self.clone() }, namespace)
    }
}

#[derive(Clone)]
struct FencedClient {
    client: Client,
    fence: Fence,
}

impl Service<Request<Body>> for FencedClient {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, fence) = (self.client.clone(), self.fence.clone());
        Box::pin(async move {
            if request.method() == Method::GET {
                return Ok(client.send(request).await?);
            }
            match fence.deadline() {
                None => Err(Fenced.into()),
                Some(None) => Ok(client.send(request).await?),
                // The request may have arrived; after the deadline nobody may rely on its answer.
                Some(Some(until)) => match tokio::time::timeout_at(until, client.send(request)).await {
                    Ok(answer) => Ok(answer?),
                    Err(_) => Err(Fenced.into()),
                },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Fence, Fenced};
    use http::{Request, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Api, Client, api::PostParams, client::Body};
    use std::time::Duration;
    use tokio::time::Instant;

    /// Answers everything after a delay, with an empty ConfigMap.
    fn server(delay: Duration) -> Client {
        let answer = move |_: Request<Body>| async move {
            tokio::time::sleep(delay).await;
            let body = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#.to_vec();
            Ok::<_, std::convert::Infallible>(Response::new(Body::from(body)))
        };
        Client::new(tower::service_fn(answer), "default")
    }

    async fn write(client: &Client) -> Result<ConfigMap, kube::Error> {
        Api::default_namespaced(client.clone()).create(&PostParams::default(), &ConfigMap::default()).await
    }

    fn is_fenced(error: &kube::Error) -> bool {
        matches!(error, kube::Error::Service(source) if source.is::<Fenced>())
    }

    #[tokio::test(start_paused = true)]
    async fn writes_pass_only_while_the_lease_is_held_but_reads_always_do() {
        let fence = Fence::shut();
        let client = fence.guard(server(Duration::ZERO));
        assert!(is_fenced(&write(&client).await.unwrap_err()));
        assert!(Api::<ConfigMap>::default_namespaced(client.clone()).get("a").await.is_ok());
        fence.extend(Instant::now() + Duration::from_secs(10));
        assert!(write(&client).await.is_ok());
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert!(is_fenced(&write(&client).await.unwrap_err()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_under_way_is_given_up_when_the_lease_ends() {
        let fence = Fence::shut();
        fence.extend(Instant::now() + Duration::from_secs(10));
        let started = Instant::now();
        let client = fence.guard(server(Duration::from_secs(60)));
        assert!(is_fenced(&write(&client).await.unwrap_err()));
        assert_eq!(started.elapsed(), Duration::from_secs(10));
    }
}
