// SPDX-License-Identifier: Apache-2.0
//! Which optional APIs the cluster serves right now.
//!
//! One aggregated discovery request answers for all of them. It is repeated every ten minutes and shortly after a
//! CRD of a wanted group changes. "Not listed" means absent; a failed or stale answer means nothing and changes
//! nothing.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::{Stream, StreamExt, future::Either};
use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    core::{GroupVersionKind, PartialObjectMeta},
    runtime::{WatchStreamExt, watcher},
};
use serde::Deserialize;
use tokio::sync::{Notify, watch};

const REFRESH: Duration = Duration::from_secs(600);
/// Discovery lags a new CRD by a moment; look a few times after a change.
const AFTER_CHANGE: [Duration; 3] = [Duration::from_millis(300), Duration::from_secs(2), Duration::from_secs(10)];
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// What is known about one API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Presence {
    Served,
    Absent,
    /// Never heard yet. Plans must not act on it.
    #[default]
    Unknown,
}

type Known = Arc<HashMap<GroupVersionKind, Presence>>;

/// The answers so far. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Capabilities {
    wanted: Arc<BTreeSet<Wanted>>,
    known: watch::Sender<Known>,
    changed: Arc<Notify>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wanted {
    group: String,
    version: String,
    kind: String,
}

impl Capabilities {
    pub fn new(wanted: impl IntoIterator<Item = GroupVersionKind>) -> Self {
        let wanted = wanted.into_iter().map(|gvk| Wanted { group: gvk.group, version: gvk.version, kind: gvk.kind });
        Self {
            wanted: Arc::new(wanted.collect()),
            known: watch::Sender::new(Known::default()),
            changed: Arc::new(Notify::new()),
        }
    }

    pub fn presence(&self, api: &GroupVersionKind) -> Presence {
        self.known.borrow().get(api).copied().unwrap_or_default()
    }

    /// Resolves when the API is known to be in this state.
    pub async fn wait(&self, api: &GroupVersionKind, presence: Presence) {
        // The sender lives in self, so the wait cannot fail.
        let _ = self.known.subscribe().wait_for(|known| known.get(api).copied().unwrap_or_default() == presence).await;
    }

    /// Ticks whenever an answer changes.
    pub fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        futures::stream::unfold(self.known.subscribe(), |mut known| async move {
            known.changed().await.ok()?;
            Some(((), known))
        })
    }

    /// Asks once. Errors leave the answers as they are.
    pub async fn refresh(&self, client: &Client) -> Result<(), kube::Error> {
        let request = Request::get("/apis").header(http::header::ACCEPT, ACCEPT).body(Vec::new());
        let groups: Groups = client.request(request.map_err(kube::Error::HttpError)?).await?;
        self.known.send_if_modified(|known| {
            let fresh = self.learn(known, &groups);
            let differs = fresh != **known;
            if differs {
                *known = Arc::new(fresh);
            }
            differs
        });
        Ok(())
    }

    /// Keeps the answers fresh until dropped.
    pub async fn follow(self, client: Client) {
        futures::future::join(self.watch_crds(&client), self.keep_fresh(&client)).await;
    }

    async fn watch_crds(&self, client: &Client) {
        let crds = Api::<PartialObjectMeta<CustomResourceDefinition>>::all(client.clone());
        let mut events = std::pin::pin!(watcher(crds, watcher::Config::default()).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Apply(crd) | watcher::Event::Delete(crd)) if self.concerns(&crd.name_any()) => {
                    self.changed.notify_one();
                }
                // What changed before the watch began is not told by it.
                Ok(watcher::Event::InitDone) => self.refresh_or_warn(client).await,
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "cannot watch CRDs; optional APIs are looked up every ten minutes only");
                }
            }
        }
    }

    async fn refresh_or_warn(&self, client: &Client) {
        if let Err(error) = self.refresh(client).await {
            tracing::warn!(%error, "discovery failed; the known APIs stay as they were");
        }
    }

    async fn keep_fresh(&self, client: &Client) {
        loop {
            let pause = std::pin::pin!(tokio::time::sleep(REFRESH));
            let delays = match futures::future::select(pause, std::pin::pin!(self.changed.notified())).await {
                Either::Left(_) => &AFTER_CHANGE[..1],
                Either::Right(_) => &AFTER_CHANGE[..],
            };
            for delay in delays {
                tokio::time::sleep(*delay).await;
                self.refresh_or_warn(client).await;
            }
        }
    }

    fn concerns(&self, crd: &str) -> bool {
        let group = crd.split_once('.').map_or("", |(_, group)| group);
        self.wanted.iter().any(|wanted| wanted.group == group)
    }

    fn learn(&self, known: &Known, groups: &Groups) -> HashMap<GroupVersionKind, Presence> {
        let answer = |wanted: &Wanted| {
            let api = GroupVersionKind::gvk(&wanted.group, &wanted.version, &wanted.kind);
            let versions = groups.items.iter().filter(|group| group.metadata.name == wanted.group);
            let version = versions.flat_map(|group| &group.versions).find(|version| version.version == wanted.version);
            let presence = match version {
                Some(version) if version.freshness.as_deref() == Some("Stale") => {
                    known.get(&api).copied().unwrap_or_default()
                }
                Some(version) if version.serves(&wanted.kind) => Presence::Served,
                _ => Presence::Absent,
            };
            (api, presence)
        };
        self.wanted.iter().map(answer).collect()
    }
}

// The parts of apidiscovery.k8s.io/v2 that matter here. A server that answers with anything else is an error,
// not an empty list.

#[derive(Debug, Deserialize)]
struct Groups {
    items: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    metadata: GroupName,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Debug, Deserialize)]
struct GroupName {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<ServedResource>,
    freshness: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServedResource {
    response_kind: Option<ServedKind>,
}

#[derive(Debug, Deserialize)]
struct ServedKind {
    kind: String,
}

impl Version {
    fn serves(&self, kind: &str) -> bool {
        self.resources.iter().any(|resource| resource.response_kind.as_ref().is_some_and(|served| served.kind == kind))
    }
}

#[cfg(test)]
mod tests {
    use super::{Capabilities, Groups, Known, Presence};
    use kube::core::GroupVersionKind;
    use serde_json::json;
    use std::sync::Arc;

    fn istio() -> GroupVersionKind {
        GroupVersionKind::gvk("security.istio.io", "v1", "PeerAuthentication")
    }

    fn learn(known: Known, groups: serde_json::Value) -> Presence {
        let groups: Groups = serde_json::from_value(groups).unwrap();
        Capabilities::new([istio()]).learn(&known, &groups)[&istio()]
    }

    fn listed(freshness: &str) -> serde_json::Value {
        let kind = json!({"responseKind": {"kind": "PeerAuthentication"}});
        let version = json!({"version": "v1", "resources": [kind], "freshness": freshness});
        json!({"items": [{"metadata": {"name": "security.istio.io"}, "versions": [version]}]})
    }

    #[test]
    fn listed_means_served_and_missing_means_absent() {
        assert_eq!(learn(Known::default(), listed("Current")), Presence::Served);
        assert_eq!(learn(Known::default(), json!({"items": []})), Presence::Absent);
    }

    #[test]
    fn a_stale_group_changes_nothing() {
        assert_eq!(learn(Known::default(), listed("Stale")), Presence::Unknown);
        let known = Known::from(Arc::new([(istio(), Presence::Served)].into()));
        assert_eq!(learn(known, listed("Stale")), Presence::Served);
    }

    #[test]
    fn an_answer_that_is_no_group_list_is_refused() {
        assert!(serde_json::from_value::<Groups>(json!({"kind": "Status", "code": 503})).is_err());
    }
}
