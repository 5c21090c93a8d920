// SPDX-License-Identifier: Apache-2.0
//! Fake clouds: small servers that speak a cloud's wire format, and lie in all the ways that clouds do.
//!
//! What they answer with comes from a `shapes.yaml` in each cloud's folder, which names the section of the specification
//! that it was written from. A fake and its client share no types, so that one misreading does not hide in both.

pub mod economy;
mod serve;
mod shapes;
mod trouble;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bivouac_market::Row;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use serde_json::Value;

pub use economy::{Economy, Fate, Good, Phase, Refused, Rented};
pub use shapes::Shapes;
pub use trouble::Trouble;

use crate::fault::Operation;
use crate::wire::{Broken, Line};

/// How one cloud answers.
pub trait Fake: Send {
    /// What a request is for.
    fn operation(&self, question: &Question) -> Operation;

    /// The answer to a request with a good credential.
    fn answer(&mut self, question: &Question, economy: &mut Economy) -> Answer;

    /// Whether the request has the right credential.
    fn knows(&self, question: &Question) -> bool;

    fn shapes(&self) -> &Shapes;

    /// A row of a price list as this cloud sells it.
    fn good(&self, row: &Row<'_>) -> Option<Good> {
        Good::of(row)
    }
}

/// A request, taken apart.
#[derive(Clone, Debug)]
pub struct Question {
    pub method: Method,
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: http::HeaderMap,
    pub body: Value,
    /// As it came.
    pub raw: Bytes,
}

/// A status and what goes with it.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// A fake that can be asked, watched and disturbed. Clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<Mutex<State>>);

struct State {
    fake: Box<dyn Fake>,
    economy: Economy,
    troubles: Vec<(Option<Operation>, Trouble)>,
    /// The newest last.
    asked: VecDeque<(Operation, Question, tokio::time::Instant)>,
}

/// A server that runs for days forgets the oldest questions.
const REMEMBERED: usize = 10_000;

// === impl Server ===

impl Server {
    pub fn new(fake: Box<dyn Fake>, economy: Economy) -> Self {
        Self(Arc::new(Mutex::new(State { fake, economy, troubles: Vec::new(), asked: VecDeque::new() })))
    }

    /// The next request for `on`, or the next of any kind, meets this.
    pub fn trouble(&self, on: impl Into<Option<Operation>>, trouble: Trouble) {
        self.lock().troubles.push((on.into(), trouble));
    }

    /// What was asked so far, and when.
    pub fn asked(&self, operation: Operation) -> Vec<(Question, tokio::time::Instant)> {
        let state = self.lock();
        let right = state.asked.iter().filter(|(one, ..)| *one == operation);
        right.map(|(_, question, at)| (question.clone(), *at)).collect()
    }

    pub fn economy<T>(&self, with: impl FnOnce(&mut Economy) -> T) -> T {
        with(&mut self.lock().economy)
    }

    /// A line that ends here, without a network.
    pub fn line(&self) -> Line {
        let server = self.clone();
        Line::new(tower::service_fn(move |request| {
            let server = server.clone();
            async move { server.handle(request).await }
        }))
    }

    pub async fn handle(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Broken> {
        let question = Question::of(request);
        let trouble = {
            let mut state = self.lock();
            let operation = state.fake.operation(&question);
            if state.asked.len() >= REMEMBERED {
                state.asked.pop_front();
            }
            state.asked.push_back((operation, question.clone(), tokio::time::Instant::now()));
            let planned = state.troubles.iter().position(|(on, _)| on.is_none_or(|on| on == operation));
            planned.map(|planned| state.troubles.remove(planned).1)
        };
        match trouble {
            Some(trouble) => trouble.meet(self, &question).await,
            None => Ok(self.answer(&question).into()),
        }
    }

    fn answer(&self, question: &Question) -> Answer {
        let mut state = self.lock();
        let State { fake, economy, .. } = &mut *state;
        if fake.knows(question) { fake.answer(question, economy) } else { fake.shapes().refusal(Refused::Unauthorized) }
    }

    fn refusal(&self, refused: Refused) -> Answer {
        self.lock().fake.shapes().refusal(refused)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Server")
    }
}

// === impl Question ===

impl Question {
    fn of(request: Request<Bytes>) -> Self {
        let (parts, raw) = request.into_parts();
        let query = parts.uri.query().unwrap_or_default();
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let body = serde_json::from_slice(&raw).unwrap_or_default();
        Self { method: parts.method, path: parts.uri.path().to_owned(), query, headers: parts.headers, body, raw }
    }

    /// Method and the parts of the path behind the base, to be matched on.
    pub fn route(&self, base: &str) -> (&str, Vec<&str>) {
        let path = self.path.strip_prefix(base).unwrap_or(&self.path);
        (self.method.as_str(), path.split('/').filter(|part| !part.is_empty()).collect())
    }

    pub fn asked(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(one, _)| one == key).map(|(_, value)| value.as_str())
    }

    pub fn has_bearer(&self, key: &str) -> bool {
        self.headers.get("authorization").is_some_and(|value| value.as_bytes() == format!("Bearer {key}").as_bytes())
    }

    /// A list of the body, by JSON pointer.
    pub fn list(&self, pointer: &str) -> &[Value] {
        self.body.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// A text of the body, by JSON pointer.
    pub fn text(&self, pointer: &str) -> &str {
        self.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

// === impl Answer ===

impl Answer {
    pub fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { status, headers, body: Bytes::from(body.to_string()) }
    }

    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    pub fn with_header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }
}

impl From<Answer> for Response<Bytes> {
    fn from(answer: Answer) -> Self {
        let mut response = Response::new(answer.body);
        *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in answer.headers {
            if let (Ok(name), Ok(value)) = (name.parse::<http::HeaderName>(), value.parse()) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}
