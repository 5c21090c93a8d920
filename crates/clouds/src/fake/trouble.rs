// SPDX-License-Identifier: Apache-2.0
//! What can happen to a request on its way, or to the answer on its way back.

use std::time::Duration;

use bytes::Bytes;
use http::Response;

use super::{Answer, Question, Refused, Server};
use crate::wire::Broken;

/// Something that goes wrong once.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// The cloud refuses, in its own words.
    Refuse(Refused),
    /// It refuses and says for how many seconds.
    RefuseFor(u64),
    /// Any other status, with an empty answer.
    Status(u16),
    /// A page of some proxy, with this status.
    Html(u16),
    /// The answer stops in the middle.
    Truncated,
    /// Every number in the answer is a text and every text a number.
    WrongTypes,
    /// The answer has nothing in it.
    Empty,
    /// It is done, and the answer says that it was not.
    DoneButRefused(u16),
    /// It is done, and the line breaks before the answer.
    DoneButLost,
    /// The line breaks before anything arrives.
    NotSent,
    /// No answer ever comes. It is not done.
    Silence,
    /// It is done, and no answer ever comes.
    DoneButSilent,
    /// This answer and no other: nothing is done, whatever it says.
    Instead(Answer),
}

/// Longer than anybody waits.
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);

// === impl Trouble ===

impl Trouble {
    pub(super) async fn meet(self, server: &Server, question: &Question) -> Result<Response<Bytes>, Broken> {
        let answer = match self {
            Self::Refuse(refused) => server.refusal(refused),
            Self::RefuseFor(seconds) => server.refusal(Refused::RateLimited).with_header("retry-after", seconds),
            Self::Status(status) => Answer::empty(status),
            Self::Html(status) => html(status),
            Self::Truncated => {
                let answer = server.answer(question);
                let half = answer.body.len() / 2;
                Answer { body: answer.body.slice(..half), ..answer }
            }
            Self::WrongTypes => {
                let answer = server.answer(question);
                let mut body = serde_json::from_slice(&answer.body).unwrap_or_default();
                confuse(&mut body);
                Answer { body: Bytes::from(body.to_string()), ..answer }
            }
            Self::Empty => Answer { body: Bytes::new(), ..server.answer(question) },
            Self::DoneButRefused(status) => {
                server.answer(question);
                Answer { status, ..server.refusal(Refused::Broken) }
            }
            Self::DoneButLost => {
                server.answer(question);
                return Err(Broken::after_send("the connection was reset"));
            }
            Self::NotSent => return Err(Broken::before_send("the connection was refused")),
            Self::Silence => {
                tokio::time::sleep(FOR_EVER).await;
                Answer::empty(504)
            }
            Self::DoneButSilent => {
                server.answer(question);
                tokio::time::sleep(FOR_EVER).await;
                Answer::empty(504)
            }
            Self::Instead(answer) => answer,
        };
        Ok(answer.into())
    }
}

fn html(status: u16) -> Answer {
    let page =
        "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Checking your browser</body></html>";
    let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
    Answer { status, headers, body: Bytes::from_static(page.as_bytes()) }
}

fn confuse(value: &mut serde_json::Value) {
    use serde_json::{Value, json};
    match value {
        Value::String(text) => *value = json!(text.len()),
        Value::Number(number) => *value = json!(format!("about {number}")),
        Value::Bool(_) => *value = json!({}),
        Value::Array(list) => list.iter_mut().for_each(confuse),
        Value::Object(map) => map.values_mut().for_each(confuse),
        Value::Null => {}
    }
}
