// SPDX-License-Identifier: Apache-2.0
//! Whatever a client sends, it gets an answer that can be read, and the server lives on.
//!
//! The input is a request as text: method and path on the first line, media type on the second, the body below.

use std::sync::OnceLock;

use bivouac_apiserver::{ApiServer, Settings};
use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full};

struct World {
    runtime: tokio::runtime::Runtime,
    server: ApiServer,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let settings = Settings { seed: Some(1), ..Settings::default() };
        let server = runtime.block_on(ApiServer::start(settings)).expect("a server");
        World { runtime, server }
    })
}

/// Whether the input was a request at all.
pub fn check(data: &[u8]) -> bool {
    let Some((request, path)) = request(data) else { return false };
    let World { runtime, server } = world();
    runtime.block_on(async {
        let answer = server.answer(request).await;
        let status = answer.status();
        assert!(status.as_u16() >= 200 && status.as_u16() < 600, "{path}: {status}");
        assert_ne!(status.as_u16(), 101, "{path}");
        let json = answer.headers().get("content-type").is_some_and(|kind| kind == "application/json");
        if path.contains("watch") {
            // A watch need not end; its beginning is enough.
            return;
        }
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        if json {
            let read: Result<serde_json::Value, _> = serde_json::from_slice(&body);
            assert!(read.is_ok(), "{path}: {}", String::from_utf8_lossy(&body));
        }
    });
    true
}

fn request(data: &[u8]) -> Option<(Request<Full<Bytes>>, String)> {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let first = std::str::from_utf8(parts.next()?).ok()?;
    let (method, path) = first.split_once(' ')?;
    let media = parts.next().unwrap_or_default();
    let body = Bytes::copy_from_slice(parts.next().unwrap_or_default());
    let method: Method = method.parse().ok()?;
    let uri: Uri = path.parse().ok()?;
    let mut request = Request::builder().method(method).uri(uri);
    if let Ok(media) = http::HeaderValue::from_bytes(media) {
        request = request.header("content-type", media.clone()).header("accept", media);
    }
    Some((request.body(Full::new(body)).ok()?, path.to_owned()))
}
