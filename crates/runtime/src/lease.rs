// SPDX-License-Identifier: Apache-2.0
//! Leader election on a Lease, with client-go's protocol and timings.
//!
//! Clocks of different machines are never compared: a lease of another holder is expired when we saw it unchanged
//! for its duration, on our own clock. Our own lease counts from before the renewing request was sent.

use std::{sync::Arc, time::Duration};

use bivouac_core::clock::Clock;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use tokio::time::Instant;

use crate::fence::Fence;

/// Which lease, for whom, and how patient.
#[derive(Clone, Debug)]
pub struct Settings {
    pub namespace: String,
    pub name: String,
    pub identity: String,
    /// How long others must wait after our last renewal.
    pub duration: Duration,
    /// How long after the start of the last good renewal we still write. Shorter than `duration`.
    pub renew_deadline: Duration,
    pub retry: Duration,
}

impl Settings {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// One candidate.
#[derive(Debug)]
pub struct Elector {
    api: Api<Lease>,
    settings: Settings,
    clock: Arc<dyn Clock>,
    fence: Fence,
    /// The lease as we last saw it, and since when it looks like that.
    seen: Option<(Lease, Instant)>,
}

/// What a candidate hears while it does not lead.
#[derive(Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// Another process leads: this one is a healthy standby.
    HeldBy(String),
    /// The lease cannot even be read or written.
    Trouble(String),
}

/// What one attempt came to.
#[derive(Debug, PartialEq, Eq)]
enum Attempt {
    Held,
    HeldBy(String),
}

impl Elector {
    /// The client must not be fenced: the lease is what opens the fence.
    pub fn new(client: Client, settings: Settings, clock: Arc<dyn Clock>, fence: Fence) -> Self {
        Self { api: Api::namespaced(client, &settings.namespace), settings, clock, fence, seen: None }
    }

    /// Resolves when the lease is ours and the fence open. `meanwhile` hears what happens until then.
    pub async fn acquire(&mut self, mut meanwhile: impl FnMut(Meanwhile)) {
        loop {
            match self.attempt().await {
                Ok(Attempt::Held) => return,
                Ok(Attempt::HeldBy(holder)) => meanwhile(Meanwhile::HeldBy(holder)),
                Err(error) => {
                    let error = crate::reconcile::plain(&error);
                    tracing::warn!(lease = self.settings.name, error, "cannot take the lease, trying again");
                    meanwhile(Meanwhile::Trouble(error));
                }
            }
            tokio::time::sleep(crate::reconcile::jittered(self.settings.retry)).await;
        }
    }

    /// Renews until the lease is lost; by then the fence is shut.
    pub async fn hold(&mut self) {
        let mut good = Instant::now();
        loop {
            tokio::time::sleep(self.settings.retry).await;
            let started = Instant::now();
            let deadline = good + self.settings.renew_deadline;
            match tokio::time::timeout_at(deadline, self.attempt()).await {
                Ok(Ok(Attempt::Held)) => good = started,
                Ok(Ok(Attempt::HeldBy(holder))) => {
                    tracing::error!(lease = self.settings.name, holder, "the lease was taken by somebody else");
                    break;
                }
                Ok(Err(error)) => {
                    let error = crate::reconcile::plain(&error);
                    tracing::warn!(lease = self.settings.name, error, "lease not renewed, trying again");
                }
                Err(_) => {}
            }
            if Instant::now() >= good + self.settings.renew_deadline {
                tracing::error!(lease = self.settings.name, "the lease could not be renewed in time");
                break;
            }
        }
        self.fence.close();
        self.seen = None;
    }

    /// Gives the lease back, so that a successor need not wait.
    pub async fn release(&mut self) {
        self.fence.close();
        let mut outcome = self.give_back().await;
        if matches!(&outcome, Err(kube::Error::Api(status)) if status.code == 409) {
            // A renewal that the stop cut off was written all the same, or somebody took the lease.
            outcome = match self.look().await {
                Ok(()) => self.give_back().await,
                Err(error) => Err(error),
            };
        }
        self.seen = None;
        if let Err(error) = outcome {
            let error = crate::reconcile::plain(&error);
            tracing::warn!(lease = self.settings.name, error, "lease not released; a successor waits until it expires");
        }
    }

    /// Writes that nobody holds it, if we do as far as we know.
    async fn give_back(&self) -> Result<(), kube::Error> {
        let Some((lease, _)) = &self.seen else { return Ok(()) };
        if holder(lease) != Some(self.settings.identity.as_str()) {
            return Ok(());
        }
        let mut lease = lease.clone();
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(self.clock.now()));
        self.api.replace(&self.settings.name, &PostParams::default(), &lease).await.map(drop)
    }

    async fn attempt(&mut self) -> Result<Attempt, kube::Error> {
        let started = Instant::now();
        let ours = |lease: &Lease| holder(lease) == Some(self.settings.identity.as_str());
        // While we hold it we know its version: one request renews it.
        if !self.seen.as_ref().is_some_and(|(lease, _)| ours(lease)) {
            self.look().await?;
        }
        let Some((lease, since)) = &self.seen else {
            let fresh = self.next(None);
            return self.settle(self.api.create(&PostParams::default(), &fresh).await, started).await;
        };
        let patience = Duration::from_secs(lease_seconds(lease));
        match holder(lease) {
            Some(other) if other != self.settings.identity && since.elapsed() < patience => {
                Ok(Attempt::HeldBy(other.to_owned()))
            }
            _ => {
                let next = self.next(Some(lease));
                self.settle(self.api.replace(&self.settings.name, &PostParams::default(), &next).await, started).await
            }
        }
    }

    async fn settle(&mut self, written: Result<Lease, kube::Error>, started: Instant) -> Result<Attempt, kube::Error> {
        match written {
            Ok(lease) => {
                self.seen = Some((lease, started));
                self.fence.extend(started + self.settings.renew_deadline);
                Ok(Attempt::Held)
            }
            // Somebody was faster, or a former answer of ours got lost: look who holds it now.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.seen = None;
                self.look().await?;
                match self.seen.as_ref().and_then(|(lease, _)| holder(lease)) {
                    Some(other) if other != self.settings.identity => Ok(Attempt::HeldBy(other.to_owned())),
                    _ => Err(kube::Error::Api(status)),
                }
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                self.seen = None;
                Err(kube::Error::Api(status))
            }
            Err(error) => Err(error),
        }
    }

    async fn look(&mut self) -> Result<(), kube::Error> {
        let current = self.api.get_opt(&self.settings.name).await?;
        let unchanged = match (&current, &self.seen) {
            (Some(current), Some((seen, _))) => current.spec == seen.spec,
            _ => false,
        };
        match (current, &mut self.seen) {
            // Keep the time we first saw it like this, but take the new resourceVersion.
            (Some(current), Some((seen, _))) if unchanged => *seen = current,
            (Some(current), seen) => *seen = Some((current, Instant::now())),
            (None, seen) => *seen = None,
        }
        Ok(())
    }

    fn next(&self, current: Option<&Lease>) -> Lease {
        let now = Some(MicroTime(self.clock.now()));
        let old = current.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let kept = old.holder_identity.as_deref() == Some(&self.settings.identity);
        let spec = LeaseSpec {
            holder_identity: Some(self.settings.identity.clone()),
            lease_duration_seconds: i32::try_from(self.settings.duration.as_secs()).ok(),
            acquire_time: if kept { old.acquire_time } else { now.clone() },
            renew_time: now,
            lease_transitions: Some(old.lease_transitions.unwrap_or(0).saturating_add(i32::from(!kept))),
            ..LeaseSpec::default()
        };
        let metadata = current.map_or_else(
            || ObjectMeta { name: Some(self.settings.name.clone()), ..ObjectMeta::default() },
            |lease| lease.metadata.clone(),
        );
        Lease { metadata, spec: Some(spec) }
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

fn lease_seconds(lease: &Lease) -> u64 {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(15)
}

/// Who holds a lease of another program right now, judged by its own renewal time.
pub async fn current_holder(
    client: &Client,
    namespace: &str,
    name: &str,
    clock: &dyn Clock,
) -> Result<Option<String>, kube::Error> {
    let Some(lease) = Api::<Lease>::namespaced(client.clone(), namespace).get_opt(name).await? else { return Ok(None) };
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0);
    let fresh = renewed.is_some_and(|renewed| {
        let age = clock.now().duration_since(renewed);
        age < jiff::SignedDuration::from_secs(i64::try_from(lease_seconds(&lease)).unwrap_or(15))
    });
    Ok(holder(&lease).filter(|_| fresh).map(str::to_owned))
}

#[cfg(test)]
mod tests;
