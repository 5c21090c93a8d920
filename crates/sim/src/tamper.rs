// SPDX-License-Identifier: Apache-2.0
//! Watches that lag, skip and break.

use std::{collections::VecDeque, future::pending};

use bytes::{Bytes, BytesMut};
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::json;
use tokio::time::Instant;

use crate::gate::{Body, Gate};

/// What happens to one event of a watch.
pub enum Fate {
    Tell,
    TellAt(Instant),
    /// Nothing more, and then that the history is gone.
    GoneAt(Instant),
    /// The watch ends before it is told.
    End,
}

struct Flow {
    body: Body,
    gate: Gate,
    life: u64,
    part: BytesMut,
    lines: VecDeque<Bytes>,
    over: bool,
}

/// The same watch, as the trial wants it.
pub fn wrap(body: Body, gate: Gate, life: u64) -> Body {
    let flow = Flow { body, gate, life, part: BytesMut::new(), lines: VecDeque::new(), over: false };
    StreamBody::new(Box::pin(stream::unfold(flow, Flow::next))).boxed_unsync()
}

impl Flow {
    async fn next(mut self) -> Option<(Result<Frame<Bytes>, std::convert::Infallible>, Self)> {
        if self.over {
            return None;
        }
        let line = self.line().await?;
        if !self.gate.is_alive(self.life) {
            return pending().await;
        }
        if is_bookmark(&line) {
            return Some((Ok(Frame::data(line)), self));
        }
        let line = match self.gate.event() {
            Fate::Tell => line,
            Fate::TellAt(until) => {
                tokio::time::sleep_until(until).await;
                line
            }
            Fate::GoneAt(until) => {
                tokio::time::sleep_until(until).await;
                self.over = true;
                gone()
            }
            Fate::End => return None,
        };
        if !self.gate.is_alive(self.life) {
            return pending().await;
        }
        Some((Ok(Frame::data(line)), self))
    }

    /// The next line, when it has travelled.
    async fn line(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            let Ok(frame) = self.body.frame().await?;
            tokio::time::sleep(self.gate.latency()).await;
            self.part.extend_from_slice(frame.data_ref()?);
            while let Some(end) = self.part.iter().position(|byte| *byte == b'\n') {
                self.lines.push_back(self.part.split_to(end + 1).freeze());
            }
        }
    }
}

fn is_bookmark(line: &[u8]) -> bool {
    line.starts_with(br#"{"type":"BOOKMARK""#)
}

fn gone() -> Bytes {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 410, "reason": "Expired",
        "message": "too old resource version: the simulation took the history away",
    });
    Bytes::from(format!("{}\n", json!({ "type": "ERROR", "object": status })))
}
