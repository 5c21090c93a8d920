// SPDX-License-Identifier: Apache-2.0
//! A watch that stays open while a case goes on.

use std::time::Duration;

use anyhow::Result;
use http_body_util::BodyExt;
use kube::Client;
use serde_json::Value;
use tokio::sync::mpsc;

use super::request::{self, Answer, Parts};

/// Its reader ends when this is dropped.
pub struct Watch {
    events: mpsc::Receiver<Value>,
    reader: tokio::task::JoinHandle<()>,
}

impl Watch {
    /// A refusal is an answer without a watch.
    pub async fn open(client: &Client, parts: Parts) -> Result<(Answer, Option<Self>)> {
        let response = request::open(client, parts).await?;
        if !response.status().is_success() {
            return Ok((request::read(response).await?, None));
        }
        let answer = request::head(&response);
        let (sender, events) = mpsc::channel(1000);
        let mut body = response.into_body();
        let reader = tokio::spawn(async move {
            let mut buffer = Vec::new();
            while let Some(Ok(frame)) = body.frame().await {
                buffer.extend_from_slice(frame.data_ref().map_or(&[], |data| data.as_ref()));
                while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = buffer.drain(..=end).collect();
                    let event = serde_json::from_slice(&line).unwrap_or_else(|_| String::from_utf8_lossy(&line).into());
                    if sender.send(event).await.is_err() {
                        return;
                    }
                }
            }
        });
        Ok((answer, Some(Self { events, reader })))
    }

    /// The next events, and whether the watch has ended.
    pub async fn read(&mut self, count: Option<usize>, patience: Duration) -> (Vec<Value>, bool) {
        let mut events = Vec::new();
        let end = tokio::time::Instant::now() + patience;
        while count.is_none_or(|count| events.len() < count) {
            match tokio::time::timeout_at(end, self.events.recv()).await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => return (events, true),
                Err(_) => return (events, false),
            }
        }
        (events, false)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
