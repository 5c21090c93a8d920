// SPDX-License-Identifier: Apache-2.0
//! Who asks, and what they may do.
//!
//! Rights are always those of roles and bindings. A server that trusts everybody makes whoever shows no token an
//! administrator; nothing else differs.

mod escalation;
mod identity;
mod rbac;
mod rules;
pub mod tokens;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    call::{Call, attributes},
    registry::Resource,
    server::Inner,
    status::Status,
};
pub use escalation::check as check_escalation;
pub use identity::{authenticate, of_token};
pub use rbac::{Decision, Index};
pub use rules::Rule;

const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: Vec<(String, Vec<String>)>,
}

/// What they want to do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attributes<'a> {
    pub verb: &'a str,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// The path, for what is not a resource.
    pub path: &'a str,
}

/// What the server knows about users and their rights.
#[derive(Debug)]
pub struct Access {
    /// Whether whoever shows no token is an administrator.
    trusts_all: bool,
    tokens: BTreeMap<String, User>,
    pub signer: Arc<tokens::Signer>,
    /// Counts the writes of roles and bindings.
    written: AtomicU64,
    /// What was true after so many writes.
    index: Mutex<Option<(u64, Arc<Index>)>>,
}

impl User {
    pub fn admin() -> Self {
        Self { name: "admin".into(), groups: vec![MASTERS.into(), AUTHENTICATED.into()], ..Self::default() }
    }
}

impl Access {
    pub fn new(trusts_all: bool, tokens: BTreeMap<String, User>, signer: tokens::Signer) -> Self {
        Self { trusts_all, tokens, signer: Arc::new(signer), written: AtomicU64::default(), index: Mutex::default() }
    }

    /// The same for a server whose store holds the same.
    pub fn fork(&self, index: Arc<Index>) -> Self {
        Self {
            trusts_all: self.trusts_all,
            tokens: self.tokens.clone(),
            signer: self.signer.clone(),
            written: AtomicU64::default(),
            index: Mutex::new(Some((0, index))),
        }
    }

    /// After an object was written or removed.
    pub fn note(&self, resource: &Resource) {
        if &*resource.group == rbac::GROUP {
            self.written.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Roles and bindings as they are now.
pub fn index(server: &Inner) -> Arc<Index> {
    let access = &server.access;
    // Read before the store is: an index that is too new does no harm, one that is too old would stay.
    let written = access.written.load(Ordering::SeqCst);
    let mut kept = access.index.lock().unwrap_or_else(PoisonError::into_inner);
    match &*kept {
        Some((at, index)) if *at == written => index.clone(),
        before => {
            let index = Arc::new(Index::build(server, before.as_ref().map(|(_, index)| &**index)));
            *kept = Some((written, index.clone()));
            index
        }
    }
}

pub fn decide(server: &Inner, user: &User, wanted: &Attributes<'_>) -> Decision {
    if user.groups.iter().any(|group| group == MASTERS) || fault!(AllAllowed) {
        return Decision { allowed: true, reason: String::new() };
    }
    index(server).decide(user, wanted)
}

/// Refuses what the user may not do.
pub fn authorize(server: &Inner, user: &User, wanted: &Attributes<'_>) -> Result<(), Status> {
    let decision = decide(server, user, wanted);
    if decision.allowed {
        return Ok(());
    }
    let mut why = refusal(user, wanted);
    if !decision.reason.is_empty() {
        why = format!("{why}: {}", decision.reason);
    }
    Err(Status::forbidden(wanted.group, wanted.resource, wanted.name, why))
}

/// An apply or an update that creates needs the right to create as well.
pub fn check_creation(call: &Call) -> Result<(), Status> {
    if call.method == http::Method::POST {
        return Ok(());
    }
    authorize(&call.server, &call.user, &attributes(&call.target, "create"))
}

fn refusal(user: &User, wanted: &Attributes<'_>) -> String {
    let Attributes { verb, group, resource, subresource, namespace, path, .. } = wanted;
    let name = &user.name;
    if !path.is_empty() {
        return format!("User {name:?} cannot {verb} path {path:?}");
    }
    let part = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
    let place = match *namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    format!("User {name:?} cannot {verb} resource \"{resource}{part}\" in API group {group:?} {place}")
}
