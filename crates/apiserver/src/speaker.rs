// SPDX-License-Identifier: Apache-2.0
//! Asking from inside the process, as somebody.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};

use crate::{ApiServer, Body, User};

/// The server as one user meets it, without a token: who runs in the same process needs none.
#[derive(Clone, Debug)]
pub struct Speaker {
    server: ApiServer,
    user: User,
}

impl ApiServer {
    /// Requests through the result are this user's. What a request says about impersonation still counts.
    pub fn speaking_as(&self, user: User) -> Speaker {
        Speaker { server: self.clone(), user }
    }
}

impl Speaker {
    pub async fn answer<B>(&self, mut request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        // No connection can carry an extension, so nobody outside can pretend.
        request.extensions_mut().insert(self.user.clone());
        self.server.answer(request).await
    }
}

impl<B> tower::Service<Request<B>> for Speaker
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let speaker = self.clone();
        Box::pin(async move { Ok(speaker.answer(request).await) })
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use http_body_util::{BodyExt, Full};

    use super::*;
    use crate::Settings;

    fn request(path: &str) -> Request<Full<Bytes>> {
        Request::get(path).body(Full::default()).unwrap()
    }

    #[tokio::test]
    async fn a_speaker_has_the_rights_of_its_user_and_others_have_none() {
        let settings = Settings { trusts_all: false, seed: Some(1), ..Settings::default() };
        let server = ApiServer::start(settings).await.unwrap();
        let path = "/api/v1/namespaces/kube-system";
        assert_eq!(server.answer(request(path)).await.status(), StatusCode::FORBIDDEN);
        assert_eq!(server.speaking_as(User::admin()).answer(request(path)).await.status(), StatusCode::OK);
        let ada = User { name: "ada".into(), ..User::default() };
        let refused = server.speaking_as(ada).answer(request(path)).await;
        let body = refused.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("User \\\"ada\\\" cannot get resource"), "{body:?}");
    }
}
