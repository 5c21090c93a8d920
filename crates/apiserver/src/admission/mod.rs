// SPDX-License-Identifier: Apache-2.0
//! What looks at a write between its request and the store: it may change the object or refuse it.
//!
//! The plugins are those that the real server runs unless told otherwise, in its order.

mod accounts;
mod lifecycle;
mod limits;
mod pods;
pub mod policy;
mod quota;
mod resources;
mod security;
mod storage;
mod webhook;

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use serde_json::Value;

use crate::{
    call::Call,
    object::Object,
    registry::Resource,
    server::Inner,
    status::Status,
    store::{Keyspace, Range},
};

/// Policies and webhooks as they were after so many writes of them.
#[derive(Debug, Default)]
pub struct Admission {
    written: AtomicU64,
    kept: Mutex<Option<(u64, Arc<policy::Registered>)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

/// One write as admission sees it.
#[derive(Debug)]
pub struct Review<'a> {
    pub operation: Operation,
    pub namespace: &'a str,
    pub name: &'a str,
    /// The object after the write; nothing for a deletion.
    pub object: Option<&'a mut Value>,
    pub old: Option<&'a Value>,
}

/// Lets every plugin change the object.
pub async fn mutate(call: &mut Call, review: &mut Review<'_>) -> Result<(), Status> {
    lifecycle::admit(call, review)?;
    limits::admit(call, review)?;
    accounts::admit(call, review)?;
    storage::taint_node(call, review);
    pods::prioritise(call, review)?;
    pods::tolerate(call, review);
    storage::default_class(call, review);
    storage::protect(call, review);
    pods::run_as(call, review)?;
    from_outside(call, review).await
}

/// Policies, then webhooks; and once more what wants to see what others have changed.
async fn from_outside(call: &mut Call, review: &mut Review<'_>) -> Result<(), Status> {
    let registered = call.server.admission.registered(&call.server);
    if registered.mutates() && !policy::is_exempt(&call.resource) {
        policy::mutate(call, review, &registered, false)?;
        let changed = webhook::mutate(call, review, &registered, false).await?;
        if changed || registered.has_several_policies() {
            policy::mutate(call, review, &registered, true)?;
            webhook::mutate(call, review, &registered, true).await?;
        }
    }
    Ok(())
}

/// Lets every plugin refuse the write.
pub async fn validate(call: &mut Call, review: &Review<'_>) -> Result<(), Status> {
    if review.operation == Operation::Delete {
        lifecycle::admit(call, review)?;
    }
    limits::validate(call, review)?;
    accounts::validate(call, review)?;
    security::validate(call, review)?;
    pods::check_default_priority(call, review)?;
    pods::check_overhead(call, review)?;
    storage::check_resize(call, review)?;
    let registered = call.server.admission.registered(&call.server);
    if !policy::is_exempt(&call.resource) {
        policy::validate(call, review, &registered)?;
        webhook::validate(call, review, &registered).await?;
    }
    // What is charged must not be refused any more: quotas come last.
    if fault!(QuotaUncounted) {
        return Ok(());
    }
    quota::charge(call, review).await
}

// === impl Admission ===

impl Admission {
    /// The same for a server whose store holds the same.
    pub fn fork(&self, server: &Inner) -> Self {
        Self { written: AtomicU64::default(), kept: Mutex::new(Some((0, self.registered(server)))) }
    }

    /// After an object was written or removed.
    pub fn note(&self, resource: &Resource) {
        if policy::is_exempt(resource) {
            self.written.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn registered(&self, server: &Inner) -> Arc<policy::Registered> {
        // Read before the store is: what is too new does no harm, what is too old would stay.
        let written = self.written.load(Ordering::SeqCst);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((at, registered)) if *at == written => registered.clone(),
            _ => {
                let registered = Arc::new(policy::Registered::read(server));
                *kept = Some((written, registered.clone()));
                registered
            }
        }
    }
}

// === impl Review ===

impl Review<'_> {
    /// Whether this is about objects of this resource themselves, not a part of them.
    fn is(&self, call: &Call, group: &str, plural: &str) -> bool {
        let Resource { group: found, plural: of, .. } = &*call.resource;
        call.target.subresource.is_none() && &**found == group && &**of == plural
    }

    fn creates(&self, call: &Call, group: &str, plural: &str) -> bool {
        self.operation == Operation::Create && self.is(call, group, plural)
    }

    fn object(&self) -> Option<&Value> {
        self.object.as_deref()
    }

    fn object_mut(&mut self) -> Option<&mut Value> {
        self.object.as_deref_mut()
    }

    /// A refusal that names the object.
    fn forbidden(&self, call: &Call, why: impl std::fmt::Display) -> Status {
        let given = self.object().map(|object| (object.name(), object.meta_str("generateName"))).unwrap_or_default();
        let names = [self.name, given.0, given.1];
        // Names are made only after the plugins that change objects.
        let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
        Status::forbidden(&call.resource.group, &call.resource.plural, name, why)
    }
}

/// An object of a built-in kind.
pub fn look(server: &Inner, group: &str, plural: &str, key: &str) -> Option<Value> {
    let stored = server.store.get(&Keyspace::new(group, plural), key)?;
    serde_json::from_slice(stored.body()).ok()
}

/// All objects of a built-in kind, of one namespace where one is named.
pub fn list(server: &Inner, group: &str, plural: &str, namespace: Option<&str>) -> Vec<Value> {
    list_with(server, group, plural, namespace, "")
}

/// The same, of those objects only that contain a text. Looking for a text is much faster than reading JSON.
fn list_with(server: &Inner, group: &str, plural: &str, namespace: Option<&str>, part: &str) -> Vec<Value> {
    let range = Range { namespace, ..Range::default() };
    let part = memchr::memmem::Finder::new(part);
    let page = server.store.range(&Keyspace::new(group, plural), &range, |stored| part.find(stored.body()).is_some());
    let items = page.map(|page| page.items).unwrap_or_default();
    items.iter().filter_map(|stored| serde_json::from_slice(stored.body()).ok()).collect()
}
