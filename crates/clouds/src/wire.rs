// SPDX-License-Identifier: Apache-2.0
//! How a cloud is spoken to: one request, one answer, and what became of it.
//!
//! The same code runs over TLS and in process: a [`Line`] is anything that answers HTTP requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap};
use http::{Method, Request, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

use crate::budget::{Budget, Budgets, WITHOUT_WORD};
use crate::credentials::Credentials;
use crate::fault::{Fault, Operation, Outcome};
use crate::metrics::Metrics;
use crate::secret::Redactor;
use crate::tables::Tables;

/// Where requests go: to the cloud, or to its fake. With what all clients of a process share.
#[derive(Clone)]
pub struct Line {
    service: BoxCloneSyncService<Request<Bytes>, Response<Bytes>, Broken>,
    metrics: Metrics,
    budgets: Budgets,
    /// Tells credentials apart that have budgets of their own.
    credential: String,
}

/// Why there was no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Whether the cloud may have read the request.
    pub after_send: bool,
    pub says: String,
}

/// So long an answer may take.
const READ_WITHIN: Duration = Duration::from_secs(30);
const LAUNCH_WITHIN: Duration = Duration::from_secs(60);
/// As much of what a cloud says is shown.
const SHOWN: usize = 300;

/// What all requests of one credential share.
#[derive(Clone)]
pub struct Wire {
    pub cloud: &'static str,
    line: Line,
    base: String,
    headers: HeaderMap,
    budget: Arc<Budget>,
    redactor: Redactor,
    tables: &'static Tables,
}

/// One answer of the cloud.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A request in the making.
#[derive(Debug)]
pub struct Call<'a> {
    wire: &'a Wire,
    operation: Operation,
    method: Method,
    path: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Option<(&'static str, Bytes)>,
}

// === impl Broken ===

impl Broken {
    pub fn before_send(says: impl fmt::Display) -> Self {
        Self { after_send: false, says: says.to_string() }
    }

    pub fn after_send(says: impl fmt::Display) -> Self {
        Self { after_send: true, says: says.to_string() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.says)
    }
}

impl std::error::Error for Broken {}

// === impl Line ===

impl Line {
    pub fn new<S>(service: S) -> Self
    where
        S: Service<Request<Bytes>, Response = Response<Bytes>, Error = Broken> + Clone + Send + Sync + 'static,
        S::Future: Send,
    {
        let service = BoxCloneSyncService::new(service);
        Self { service, metrics: Metrics::default(), budgets: Budgets::default(), credential: String::new() }
    }

    /// Counts on these metrics, which somebody shows.
    pub fn with_metrics(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    /// The same line for one credential: everything that uses it shares what the cloud allows.
    pub fn of(&self, credentials: &Credentials) -> Self {
        Self { credential: credentials.fingerprint(), ..self.clone() }
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}

// === impl Wire ===

impl Wire {
    /// `base` is the address of the cloud, with scheme and without a slash at the end.
    pub fn new(cloud: &'static str, base: impl Into<String>, line: Line, tables: &'static Tables) -> Self {
        Self {
            cloud,
            budget: line.budgets.of(cloud, &line.credential, tables.rates),
            line,
            base: base.into(),
            headers: HeaderMap::new(),
            redactor: Redactor::default(),
            tables,
        }
    }

    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    pub fn with_redactor(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }

    /// The same credential and budget at another address of the cloud.
    pub fn at(&self, base: &str) -> Self {
        Self { base: base.to_owned(), ..self.clone() }
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    pub fn get(&self, operation: Operation, path: impl Into<String>) -> Call<'_> {
        self.call(operation, Method::GET, path)
    }

    pub fn post(&self, operation: Operation, path: impl Into<String>) -> Call<'_> {
        self.call(operation, Method::POST, path)
    }

    pub fn delete(&self, operation: Operation, path: impl Into<String>) -> Call<'_> {
        self.call(operation, Method::DELETE, path)
    }

    pub fn call(&self, operation: Operation, method: Method, path: impl Into<String>) -> Call<'_> {
        let path = path.into();
        Call { wire: self, operation, method, path, query: Vec::new(), headers: HeaderMap::new(), body: None }
    }

    /// A fault that is ours to word.
    pub fn fault(&self, operation: Operation, outcome: Outcome, says: impl AsRef<str>) -> Fault {
        Fault { outcome, cloud: self.cloud, operation, status: None, says: self.shown(says.as_ref()) }
    }

    /// What the cloud's refusal means, by the tables.
    pub fn refusal(&self, operation: Operation, reply: &Reply) -> Fault {
        let (outcome, says) = self.tables.read(operation, reply);
        if let Outcome::RateLimited { after } = outcome {
            // Not every cloud says it with the status that is meant for it.
            self.budget.rest(after.unwrap_or(WITHOUT_WORD));
        }
        let status = Some(reply.status.as_u16());
        Fault { outcome, cloud: self.cloud, operation, status, says: self.shown(&says) }
    }

    /// An answer that cannot be understood. Whoever spent money must look what became of it.
    pub fn nonsense(&self, operation: Operation, reply: &Reply, says: impl fmt::Display) -> Fault {
        let outcome = if operation.spends() { Outcome::Ambiguous } else { Outcome::Transient };
        let says = format!("the answer cannot be read: {says}");
        let status = Some(reply.status.as_u16());
        Fault { outcome, cloud: self.cloud, operation, status, says: self.shown(&says) }
    }

    fn shown(&self, says: &str) -> String {
        let clean = self.redactor.clean(says);
        let one_line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
        match one_line.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", one_line.get(..end).unwrap_or_default()),
            None => one_line,
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("cloud", &self.cloud).field("base", &self.base).finish_non_exhaustive()
    }
}

// === impl Call ===

impl Call<'_> {
    pub fn query(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.query.push((key.to_owned(), value.to_string()));
        self
    }

    pub fn header(mut self, name: http::HeaderName, value: http::HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    pub fn json(mut self, body: &Value) -> Self {
        self.body = Some(("application/json", Bytes::from(body.to_string())));
        self
    }

    pub fn form(mut self, fields: &[(&str, &str)]) -> Self {
        let text = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.body = Some(("application/x-www-form-urlencoded", Bytes::from(text)));
        self
    }

    /// Sends it, once, and gives back whatever the cloud answered.
    pub async fn reply(self) -> Result<Reply, Fault> {
        let (wire, operation) = (self.wire, self.operation);
        let within = if operation.spends() { LAUNCH_WITHIN } else { READ_WITHIN };
        let request = self.request()?;
        if let Err(after) = wire.budget.take(operation, within).await {
            return Err(wire.fault(operation, Outcome::RateLimited { after: Some(after) }, "our own share is used up"));
        }
        let began = tokio::time::Instant::now();
        tracing::debug!(cloud = wire.cloud, operation = operation.name(), path = %self.path, "asking");
        let answer = tokio::time::timeout(within, wire.line.service.clone().oneshot(request)).await;
        let took = began.elapsed();
        let broken = match answer {
            Ok(Ok(response)) => {
                let (parts, body) = response.into_parts();
                let reply = Reply { status: parts.status, headers: parts.headers, body };
                wire.budget.learn(&reply);
                wire.line.metrics.count(wire.cloud, operation, reply.status.as_str(), took);
                return Ok(reply);
            }
            Ok(Err(broken)) => broken,
            Err(_) => Broken::after_send(format!("no answer within {} s", within.as_secs())),
        };
        wire.line.metrics.count(wire.cloud, operation, "none", took);
        let lost = broken.after_send && operation.spends();
        Err(wire.fault(operation, if lost { Outcome::Ambiguous } else { Outcome::Transient }, &broken.says))
    }

    /// As [`reply`](Self::reply), and a refusal is a fault.
    pub async fn accepted(self) -> Result<Reply, Fault> {
        let (wire, operation) = (self.wire, self.operation);
        let reply = self.reply().await?;
        if reply.status.is_success() { Ok(reply) } else { Err(wire.refusal(operation, &reply)) }
    }

    /// As [`accepted`](Self::accepted), and the body is read.
    pub async fn read<T: DeserializeOwned>(self) -> Result<T, Fault> {
        let (wire, operation) = (self.wire, self.operation);
        let reply = self.accepted().await?;
        serde_json::from_slice(&reply.body).map_err(|error| wire.nonsense(operation, &reply, error))
    }

    fn request(&self) -> Result<Request<Bytes>, Fault> {
        let mut uri = format!("{}{}", self.wire.base, self.path);
        if !self.query.is_empty() {
            let joint = if uri.contains('?') { '&' } else { '?' };
            let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
            uri = format!("{uri}{joint}{query}");
        }
        let mut request = Request::builder().method(self.method.clone()).uri(uri);
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.wire.headers.clone());
            headers.extend(self.headers.clone());
            if let Some((kind, _)) = self.body {
                headers.insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
            }
        }
        request.extensions_mut().map(|extensions| extensions.insert(self.operation));
        let body = self.body.as_ref().map(|(_, body)| body.clone()).unwrap_or_default();
        request.body(body).map_err(|error| self.wire.fault(self.operation, Outcome::Invalid, error.to_string()))
    }
}

// === impl Reply ===

impl Reply {
    /// The body, if it is JSON.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}
