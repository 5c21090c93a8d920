// SPDX-License-Identifier: Apache-2.0
//! The way from the operator to everything outside of it. All calls pass here: they are counted, written into the
//! transcript, and made to fail as the trial says.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    convert::Infallible,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bivouac_apiserver::Speaker;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::{sync::Notify, time::Instant};

use crate::{
    Trial,
    fault::Fault,
    run::Stage,
    tamper,
    yard::{self, Yard},
};

pub type Body = UnsyncBoxBody<Bytes, Infallible>;
/// An object that is written this often within a minute is in a hot loop.
const HOT: usize = 30;
const MINUTE: Duration = Duration::from_secs(60);

/// Asked at each call whether this run is the one with that crash.
pub type Crossroads = fn(&Fault) -> bool;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Where the operator's calls go. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    server: Speaker,
    yard: Yard,
    faults: Vec<Fault>,
    crossroads: Option<Crossroads>,
    /// Whether people read along.
    aloud: bool,
    started: Instant,
    state: Mutex<State>,
    crashed: Notify,
    overheated: Notify,
}

#[derive(Debug)]
struct State {
    calls: u64,
    events: u64,
    /// Which process of the operator lives. Others have died: nothing they do reaches anybody.
    alive: u64,
    random: StdRng,
    transcript: Sha256,
    /// Watches stand still until then.
    still_until: Option<Instant>,
    /// Watches tell nothing until then, and after it that their history is gone.
    blind_until: Option<Instant>,
    /// When each object was written last, at most [`HOT`] times each.
    writes: BTreeMap<String, VecDeque<Instant>>,
    hot: Option<String>,
    last_path: String,
    deletes: BTreeSet<String>,
    last_write: Instant,
}

/// What happens to one call.
enum Fate {
    Normal,
    CrashBefore,
    CrashAfter,
    Refused { code: u16, applied: bool },
    Lost { applied: bool },
}

// === impl Gate ===

impl Gate {
    pub fn new(server: Speaker, yard: Yard, trial: &Trial, stage: &Stage) -> Self {
        let Stage { aloud, crossroads, .. } = *stage;
        let (seed, faults) = (trial.seed, trial.faults.clone());
        let state = State {
            calls: 0,
            events: 0,
            alive: 0,
            random: StdRng::seed_from_u64(seed),
            transcript: Sha256::new(),
            still_until: None,
            blind_until: None,
            writes: BTreeMap::new(),
            hot: None,
            last_path: String::new(),
            deletes: BTreeSet::new(),
            last_write: Instant::now(),
        };
        let (started, state) = (Instant::now(), Mutex::new(state));
        let (crashed, overheated) = (Notify::new(), Notify::new());
        Self(Arc::new(Shared { server, yard, faults, crossroads, aloud, started, state, crashed, overheated }))
    }

    /// The client of a process of the operator that starts now. Whoever had one before is dead.
    pub fn client(&self) -> (kube::Client, u64) {
        let life = {
            let mut state = self.state();
            state.alive += 1;
            state.alive
        };
        let gate = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let gate = gate.clone();
            async move { gate.call(life, request).await }
        });
        (kube::Client::new(service, "default"), life)
    }

    /// Resolves when the living process of the operator has crashed.
    pub async fn crashed(&self) {
        self.0.crashed.notified().await;
    }

    /// Resolves when one object is written again and again, and tells which. Such a run need not go on.
    pub async fn overheated(&self) -> String {
        loop {
            self.0.overheated.notified().await;
            if let Some(path) = self.state().hot.clone() {
                return path;
            }
        }
    }

    /// The process ends now, without a word.
    pub fn kill(&self) {
        self.state().alive += 1;
        self.0.crashed.notify_one();
    }

    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    pub fn events(&self) -> u64 {
        self.state().events
    }

    pub fn last_write(&self) -> Instant {
        self.state().last_write
    }

    /// What was written last.
    pub fn last_path(&self) -> String {
        self.state().last_path.clone()
    }

    /// What was deleted, by the path of the object.
    pub fn deletes(&self) -> BTreeSet<String> {
        self.state().deletes.clone()
    }

    /// Adds something to the transcript.
    pub fn note(&self, text: &str) {
        let passed = self.0.started.elapsed().as_micros();
        if self.0.aloud {
            eprintln!("{:>12.6} {text}", passed as f64 / 1e6);
        }
        let mut state = self.state();
        state.transcript.update(passed.to_be_bytes());
        state.transcript.update(text.as_bytes());
        state.transcript.update([0]);
    }

    pub fn transcript_hash(&self) -> String {
        let digest = self.state().transcript.clone().finalize();
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn is_alive(&self, life: u64) -> bool {
        self.state().alive == life
    }

    /// Counts an event that a watch tells, and says what happens to it.
    pub(crate) fn event(&self) -> tamper::Fate {
        let mut state = self.state();
        state.events += 1;
        let number = state.events;
        let now = Instant::now();
        for fault in &self.0.faults {
            match fault {
                Fault::Stale { event, seconds } if *event == number => {
                    state.still_until = Some(now + Duration::from_secs(u64::from(*seconds)));
                }
                Fault::Unobserved { event, seconds } if *event == number => {
                    state.blind_until = Some(now + Duration::from_secs(u64::from(*seconds)));
                }
                Fault::Cut { event } if *event == number => return tamper::Fate::End,
                _ => {}
            }
        }
        match (state.blind_until, state.still_until) {
            (Some(until), _) if until > now => tamper::Fate::GoneAt(until),
            (_, Some(until)) if until > now => tamper::Fate::TellAt(until),
            _ => tamper::Fate::Tell,
        }
    }

    /// A short while, as networks take it.
    pub(crate) fn latency(&self) -> Duration {
        Duration::from_micros(self.state().random.random_range(200..3_000))
    }

    async fn call(&self, life: u64, request: Request<kube::client::Body>) -> Result<Response<Body>, Failure> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let is_write = head.method != Method::GET;
        let path = head.uri.path().to_owned();
        let fate = self.begin(life, &head, &body).await;
        let request = Request::from_parts(head, Full::new(body));
        let response = match fate {
            Fate::CrashBefore => return self.die().await,
            Fate::CrashAfter => {
                let _ = self.send(request).await;
                return self.die().await;
            }
            Fate::Refused { code, applied } => {
                if applied {
                    let _ = self.send(request).await;
                }
                refused(code)
            }
            Fate::Lost { applied } => {
                if applied {
                    let _ = self.send(request).await;
                }
                return Err("connection reset by peer".into());
            }
            Fate::Normal => {
                let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
                let response = self.send(request).await;
                if watches && response.status().is_success() {
                    response.map(|body| tamper::wrap(body, self.clone(), life))
                } else {
                    response
                }
            }
        };
        self.note(&format!("{} {} {}", response.status().as_u16(), u8::from(is_write), path));
        tokio::time::sleep(self.latency()).await;
        if !self.is_alive(life) {
            return pending().await;
        }
        Ok(response)
    }

    /// To whom it is addressed: the API server, or what is outside of the cluster.
    async fn send(&self, request: Request<Full<Bytes>>) -> Response<Body> {
        if !request.uri().path().starts_with(yard::ROOT) {
            return self.0.server.answer(request).await;
        }
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let (code, answer) = self.0.yard.answer(&head.method, head.uri.path(), &body);
        let mut response = Response::new(Full::new(Bytes::from(answer.to_string())).boxed_unsync());
        *response.status_mut() = code;
        response
    }

    /// Counts a call, lets it travel, and says what happens to it. The dead wait here for ever.
    async fn begin(&self, life: u64, head: &http::request::Parts, body: &Bytes) -> Fate {
        if !self.is_alive(life) {
            return pending().await;
        }
        let number = self.count(head);
        self.note(&format!("{life} {number} {} {}", head.method, head.uri));
        self.state().transcript.update(body);
        tokio::time::sleep(self.latency()).await;
        let mut fate = Fate::Normal;
        for fault in &self.0.faults {
            match fault {
                Fault::Crash { call, after } if *call == number => {
                    fate = if *after { Fate::CrashAfter } else { Fate::CrashBefore };
                }
                Fault::Refused { call, code, applied } if *call == number => {
                    fate = Fate::Refused { code: *code, applied: *applied };
                }
                Fault::Lost { call, applied } if *call == number => fate = Fate::Lost { applied: *applied },
                Fault::Slow { call, seconds } if *call == number => {
                    tokio::time::sleep(Duration::from_secs(u64::from(*seconds))).await;
                }
                _ => {}
            }
        }
        for after in [false, true] {
            if self.0.crossroads.is_some_and(|here| here(&Fault::Crash { call: number, after })) {
                fate = if after { Fate::CrashAfter } else { Fate::CrashBefore };
            }
        }
        if !self.is_alive(life) {
            return pending().await;
        }
        fate
    }

    fn count(&self, head: &http::request::Parts) -> u64 {
        let mut state = self.state();
        state.calls += 1;
        // Leases are renewed for ever, and events are only told.
        let path = head.uri.path();
        if head.method != Method::GET && !path.contains("/leases") && !path.contains("/events") {
            let now = Instant::now();
            state.last_write = now;
            path.clone_into(&mut state.last_path);
            let times = state.writes.entry(path.to_owned()).or_default();
            times.push_back(now);
            if times.len() > HOT {
                times.pop_front();
            }
            if times.len() == HOT && times.front().is_some_and(|first| now.duration_since(*first) < MINUTE) {
                state.hot = Some(path.to_owned());
                self.0.overheated.notify_one();
            }
            if head.method == Method::DELETE && !path.starts_with(yard::ROOT) {
                state.deletes.insert(path.to_owned());
            }
        }
        state.calls
    }

    async fn die<T>(&self) -> T {
        self.kill();
        pending().await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error as the real server words it.
fn refused(code: u16) -> Response<Body> {
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": "an error that the simulation made", "reason": reason, "code": code,
    });
    let mut response = Response::new(Full::new(Bytes::from(status.to_string())).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response
}
