// SPDX-License-Identifier: Apache-2.0
//! The server: what it holds, and how a request finds its way.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    task::{Context, Poll},
};

use bivouac_core::{Clock, SystemClock};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use rand::{RngCore, SeedableRng, rngs::StdRng};

use crate::{
    access::{Access, Attributes, User, tokens::kept_key},
    addresses::{Addresses, ServiceRange},
    admission::Admission,
    answer::{Answer, Body, table::Setting},
    call::Call,
    metrics::Requests,
    registry::{Registry, Resource},
    request::{
        Route,
        accept::{Accepted, Form},
        options::{Include, Options},
    },
    status::Status,
    store::{Limits, Store},
    verbs::pods::log::Logs,
};

/// The largest body that is read, as in the real server.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// A Kubernetes API server. Clones are the same server.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
}

/// How a server is made.
#[derive(Debug)]
pub struct Settings {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    /// Makes uids and names follow from one number. Without it they come from the system's randomness.
    pub seed: Option<u64>,
    /// Whether whoever shows no token is an administrator. Without it they are anonymous.
    pub trusts_all: bool,
    /// Bearer tokens and whose they are.
    pub tokens: BTreeMap<String, User>,
    /// Who can tell what containers have written.
    pub logs: Option<Arc<dyn Logs>>,
    /// Where services get their addresses.
    pub service_range: ServiceRange,
    /// Where the server can be reached, if it can.
    pub advertised: Option<SocketAddr>,
}

/// What a fork has that its original has not.
#[derive(Debug)]
pub struct ForkSettings {
    pub clock: Arc<dyn Clock>,
    /// As in [`Settings::seed`].
    pub seed: Option<u64>,
}

/// What all requests share.
pub struct Inner {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub requests: Requests,
    pub access: Access,
    pub admission: Admission,
    pub logs: Option<Arc<dyn Logs>>,
    pub addresses: Addresses,
    pub advertised: Option<SocketAddr>,
    registry: RwLock<Arc<Registry>>,
    /// The resources of each definition, by its name.
    customs: Mutex<BTreeMap<String, Vec<Arc<Resource>>>>,
    random: Mutex<StdRng>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            store: Store::in_memory(Limits::default()),
            clock: Arc::new(SystemClock),
            seed: None,
            trusts_all: true,
            tokens: BTreeMap::new(),
            logs: None,
            service_range: ServiceRange::default(),
            advertised: None,
        }
    }
}

// === impl ApiServer ===

impl ApiServer {
    /// A server over a store that may hold objects already.
    pub async fn start(settings: Settings) -> Result<Self, Status> {
        let Settings { store, clock, seed, trusts_all, tokens, logs, service_range, advertised } = settings;
        let mut random = seeded(seed);
        let mut key = [0; 32];
        random.fill_bytes(&mut key);
        let access = Access::new(trusts_all, tokens, kept_key(&store, key).await?);
        let inner = Inner {
            store,
            clock,
            requests: Requests::default(),
            access,
            admission: Admission::default(),
            logs,
            addresses: Addresses::new(service_range),
            advertised,
            registry: RwLock::new(Arc::new(Registry::builtin())),
            customs: Mutex::default(),
            random: Mutex::new(random),
        };
        let server = Self { inner: Arc::new(inner) };
        crate::bootstrap::run(&server.inner).await?;
        Ok(server)
    }

    /// A server of its own in memory that begins as this one is now. Definitions, policies and roles are not read again,
    /// so this is quick. Nobody may be writing meanwhile: what is kept in memory has to fit what the store holds.
    pub fn fork(&self, settings: ForkSettings) -> Self {
        let Inner { store, access, admission, logs, addresses, advertised, customs, .. } = &*self.inner;
        let inner = Inner {
            store: store.fork(),
            clock: settings.clock,
            requests: Requests::default(),
            access: access.fork(crate::access::index(&self.inner)),
            admission: admission.fork(&self.inner),
            logs: logs.clone(),
            addresses: addresses.fork(),
            advertised: *advertised,
            registry: RwLock::new(self.inner.registry()),
            customs: Mutex::new(lock(customs).clone()),
            random: Mutex::new(seeded(settings.seed)),
        };
        Self { inner: Arc::new(inner) }
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock.clone()
    }

    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Answers one request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let accept = head.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
        let accepted = Accepted::choose(accept);
        let mut warnings = Vec::new();
        let outcome = self.route(&head, body, accepted, &mut warnings).await;
        let include = match accepted {
            Ok(Accepted { form: Form::Table, .. }) => {
                Options::parse(head.uri.query()).and_then(|options| options.include())
            }
            _ => Ok(Include::default()),
        };
        let answer = match (outcome, &include) {
            (Ok(_), Err(status)) => Answer::Refusal(status.clone()),
            (outcome, _) => outcome.unwrap_or_else(Answer::Refusal),
        };
        let setting = Setting { now: self.inner.clock.now(), include: include.unwrap_or_default() };
        let response = crate::answer::render(answer, accepted.unwrap_or(Accepted::JSON), setting, &warnings);
        self.inner.requests.count(&head.method, response.status());
        response
    }

    async fn route<B>(
        &self,
        head: &http::request::Parts,
        body: B,
        accepted: Result<Accepted, crate::request::accept::Unacceptable>,
        warnings: &mut Vec<String>,
    ) -> Result<Answer, Status>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = head.uri.path();
        let user = crate::access::authenticate(&self.inner, head)?;
        let route = Route::of(path);
        if !matches!(route, Route::Resource(_)) {
            let verb = head.method.as_str().to_ascii_lowercase();
            let wanted = Attributes { verb: &verb, path, ..Attributes::default() };
            crate::access::authorize(&self.inner, &user, &wanted)?;
        }
        match route {
            Route::Unknown => Ok(Answer::Absent),
            Route::Document(document) => crate::discovery::answer(&self.inner, &user, &document, head, accepted),
            Route::Resource(target) => {
                let mut call = Call::new(self.inner.clone(), user, target, head, accepted)?;
                let body = read(body).await?;
                let outcome = call.run(body).await;
                warnings.append(&mut call.warnings);
                outcome
            }
        }
    }
}

async fn read<B>(body: B) -> Result<Bytes, Status>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match http_body_util::Limited::new(body, BODY_LIMIT).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Status::too_large(BODY_LIMIT)),
        Err(error) => Err(Status::bad_request(format!("the body could not be read: {error}"))),
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
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
        let server = self.clone();
        Box::pin(async move { Ok(server.answer(request).await) })
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").field("store", &self.inner.store).finish_non_exhaustive()
    }
}

// === impl Inner ===

impl Inner {
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the resources of one definition.
    pub fn define(&self, definition: &str, resources: Vec<Arc<Resource>>) {
        let mut customs = lock(&self.customs);
        if resources.is_empty() {
            customs.remove(definition);
        } else {
            customs.insert(definition.to_owned(), resources);
        }
        let registry = self.registry().with_custom(customs.values().flatten());
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
    }

    /// Now, as objects carry it.
    pub fn now(&self) -> String {
        crate::object::time(self.clock.now())
    }

    /// A new uid, in the form of a random UUID.
    pub fn uid(&self) -> String {
        let mut bytes = [0; 16];
        lock(&self.random).fill_bytes(&mut bytes);
        let number = (u128::from_be_bytes(bytes) & !(0xf000 << 64) & !(0b11 << 62)) | (0x4000 << 64) | (0b10 << 62);
        let hex = format!("{number:032x}");
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
    }

    /// The end of a generated name. The letters are those of the real server: no vowels, nothing that looks alike.
    pub fn suffix(&self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut random = lock(&self.random);
        (0..5)
            .filter_map(|_| LETTERS.get(random.next_u32() as usize % LETTERS.len()))
            .map(|letter| char::from(*letter))
            .collect()
    }

    pub fn random(&self) -> u64 {
        lock(&self.random).next_u64()
    }
}

fn seeded(seed: Option<u64>) -> StdRng {
    seed.map_or_else(StdRng::from_os_rng, StdRng::seed_from_u64)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the locks guard is whole at every moment, so a panic elsewhere cannot have broken it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
