// SPDX-License-Identifier: Apache-2.0
//! The kinds that the simulated cluster lives by, and the view that holds all of them.

use std::{collections::BTreeSet, sync::Arc};

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
            pods_on: std::collections::BTreeMap<String, BTreeSet<Key>>,
            seen: u64,
        }

        impl View {
            pub(crate) fn new() -> Self {
                Self {
                    $($shelf: Shelf::new(Keyspace::new($kind::GROUP, $kind::URL_PATH_SEGMENT)),)+
                    pods_on: Default::default(),
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
                changes.iter().for_each(|change| self.note_node(change));
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

impl View {
    /// The pods that are bound to a node, in the order of their keys. Those that have none are with the empty name.
    pub fn pods_on<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a Arc<Pod>> {
        self.pods_on.get(node).into_iter().flatten().filter_map(|key| self.pods.get(key))
    }

    fn note_node(&mut self, change: &Change) {
        if let Some(Object::Pod(pod)) = &change.before
            && let Some(keys) = self.pods_on.get_mut(node_of(pod))
        {
            keys.remove(&Key::of(&pod.metadata));
            if keys.is_empty() {
                self.pods_on.remove(node_of(pod));
            }
        }
        if let Some(Object::Pod(pod)) = &change.after {
            self.pods_on.entry(node_of(pod).to_owned()).or_default().insert(Key::of(&pod.metadata));
        }
    }
}

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}
