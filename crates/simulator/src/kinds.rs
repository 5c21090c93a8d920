// SPDX-License-Identifier: Apache-2.0
//! The kinds that the simulated cluster lives by, and the view that holds all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bivouac_apiserver::store::{Keyspace, Store};
use k8s_openapi::{
    Resource as _,
    api::{
        apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::Job,
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        core::v1::{
            ConfigMap, Endpoints, Namespace, Node, PersistentVolumeClaim, Pod, ResourceQuota, Secret, Service,
            ServiceAccount,
        },
        discovery::v1::EndpointSlice,
        policy::v1::PodDisruptionBudget,
        scheduling::v1::PriorityClass,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::shelf::{Kept, Key, Shelf};

/// One object before and after something happened to it.
#[derive(Clone, Debug)]
pub struct Change {
    pub before: Option<Object>,
    pub after: Option<Object>,
}

macro_rules! kinds {
    ($($shelf:ident: $kind:ident,)+) => {
        /// One object of any of the kinds.
        #[derive(Clone, Debug)]
        pub enum Object {
            $($kind(Arc<$kind>),)+
        }

        impl Object {
            pub fn meta(&self) -> &ObjectMeta {
                match self {
                    $(Self::$kind(object) => &object.metadata,)+
                }
            }

            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $kind::KIND,)+
                }
            }
        }

        $(impl Kept for $kind {
            fn wrap(object: Arc<Self>) -> Object {
                Object::$kind(object)
            }
        })+

        /// Everything in the cluster that its own controllers look at.
        #[derive(Debug)]
        pub struct View {
            $(pub $shelf: Shelf<$kind>,)+
            pods_on: Groups<String>,
            pods_under: Groups<Key>,
            seen: u64,
        }

        impl View {
            pub(crate) fn new() -> Self {
                Self {
                    $($shelf: Shelf::new(Keyspace::new($kind::GROUP, $kind::URL_PATH_SEGMENT)),)+
                    pods_on: Groups::new(),
                    pods_under: Groups::new(),
                    seen: 0,
                }
            }

            /// Takes in what happened since the last look, and tells it.
            pub(crate) fn follow(&mut self, store: &Store) -> Vec<Change> {
                let mut changes = Vec::new();
                let revision = store.revision();
                if revision == self.seen {
                    return changes;
                }
                self.seen = revision;
                $(self.$shelf.follow(store, &mut changes);)+
                changes.iter().for_each(|change| self.note_pod(change));
                changes
            }
        }
    };
}

kinds! {
    nodes: Node,
    leases: Lease,
    namespaces: Namespace,
    service_accounts: ServiceAccount,
    secrets: Secret,
    config_maps: ConfigMap,
    quotas: ResourceQuota,
    priority_classes: PriorityClass,
    pods: Pod,
    jobs: Job,
    deployments: Deployment,
    replica_sets: ReplicaSet,
    stateful_sets: StatefulSet,
    daemon_sets: DaemonSet,
    revisions: ControllerRevision,
    volume_claims: PersistentVolumeClaim,
    services: Service,
    endpoints: Endpoints,
    endpoint_slices: EndpointSlice,
    disruption_budgets: PodDisruptionBudget,
    signing_requests: CertificateSigningRequest,
}

/// Keys of pods that have something in common.
type Groups<G> = BTreeMap<G, BTreeSet<Key>>;

impl View {
    /// The pods that are bound to a node, in the order of their keys. Those that have none are with the empty name.
    pub fn pods_on<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a Arc<Pod>> {
        self.pods_on.get(node).into_iter().flatten().filter_map(|key| self.pods.get(key))
    }

    /// The pods that find each other by their host names: those of one subdomain, in the order of their keys.
    pub fn pods_under<'a>(&'a self, subdomain: &Key) -> impl Iterator<Item = &'a Arc<Pod>> + use<'a> {
        self.pods_under.get(subdomain).into_iter().flatten().filter_map(|key| self.pods.get(key))
    }

    fn note_pod(&mut self, change: &Change) {
        if let Some(Object::Pod(pod)) = &change.before {
            leave(&mut self.pods_on, &node_of(pod), pod);
            if let Some(group) = subdomain_of(pod) {
                leave(&mut self.pods_under, &group, pod);
            }
        }
        if let Some(Object::Pod(pod)) = &change.after {
            self.pods_on.entry(node_of(pod)).or_default().insert(Key::of(&pod.metadata));
            if let Some(group) = subdomain_of(pod) {
                self.pods_under.entry(group).or_default().insert(Key::of(&pod.metadata));
            }
        }
    }
}

fn leave<G: Ord>(groups: &mut Groups<G>, group: &G, pod: &Pod) {
    if let Some(keys) = groups.get_mut(group) {
        keys.remove(&Key::of(&pod.metadata));
        if keys.is_empty() {
            groups.remove(group);
        }
    }
}

fn node_of(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
}

/// The subdomain of a pod, which is one of its namespace.
pub fn subdomain_of(pod: &Pod) -> Option<Key> {
    let name = pod.spec.as_ref()?.subdomain.as_deref().filter(|name| !name.is_empty())?;
    Some(Key::new(pod.metadata.namespace.as_deref()?, name))
}
