// SPDX-License-Identifier: Apache-2.0
//! What a plan for one Workspace needs to know. Reading only, no judgement.

use bivouac_api::tenant::Workspace;
use bivouac_engines::{
    gateway::Gateway,
    istio::{AuthorizationPolicy, PeerAuthentication},
};
use bivouac_runtime::{
    capabilities::Presence,
    reconcile::{Category, Failure, Kind, Live, Objects},
};
use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{ConfigMap, LimitRange, Namespace, ResourceQuota, ServiceAccount},
    networking::v1::NetworkPolicy,
    rbac::v1::RoleBinding,
};
use kube::{ResourceExt, core::DynamicObject};

use crate::{
    build::{self, INJECTION_LABEL},
    endpoints::{self, Endpoints},
    tenant::namespace_of,
};

/// The part of the cluster that concerns one Workspace.
#[derive(Debug, Default)]
pub struct World {
    pub namespace: Option<SeenNamespace>,
    /// Other Workspaces that want the same namespace.
    pub rivals: Vec<Rival>,
    /// The children that exist in the namespace.
    pub present: Vec<Present>,
    pub mesh: Presence,
    pub flux: Presence,
    pub gateways: Presence,
    pub endpoints: Endpoints,
    /// The writes that the server just refused.
    pub refusals: Vec<Refusal>,
}

/// A child that could not be written, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub kind: String,
    pub name: String,
    pub category: Category,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenNamespace {
    pub uid: String,
    pub owner: Option<Owner>,
    pub terminating: bool,
    pub injects_sidecars: bool,
    /// The namespace takes part in an ambient mesh, without sidecars.
    pub ambient: bool,
}

/// The Workspace that a namespace names as its controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub name: String,
    pub uid: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    pub name: String,
    pub uid: String,
    pub created: Timestamp,
}

/// One child that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Present {
    pub kind: &'static str,
    pub name: String,
}

impl World {
    pub fn has(&self, kind: &str, name: &str) -> bool {
        self.present.iter().any(|present| present.kind == kind && present.name == name)
    }
}

/// Everything comes from memory: watched objects and what we just wrote.
pub fn observe(workspace: &Workspace, live: &Live<'_>, others: &Objects<Workspace>, flux: Presence) -> World {
    let namespace = namespace_of(workspace);
    let seen = live.get::<Namespace>("", &namespace).map(|object| seen_namespace(&object));
    World {
        // Who else wants it matters only while it is free.
        rivals: if seen.is_none() { rivals(workspace, &namespace, others) } else { Vec::new() },
        namespace: seen,
        present: present(live, &namespace),
        mesh: mesh(live),
        flux,
        gateways: live.presence::<Gateway>(),
        endpoints: endpoints::observe(live),
        refusals: live.failures().iter().map(refusal).collect(),
    }
}

fn seen_namespace(object: &DynamicObject) -> SeenNamespace {
    let controller = object.owner_references().iter().find(|owner| owner.controller == Some(true));
    let has = |key: &str, value: &str| object.labels().get(key).is_some_and(|have| have == value);
    SeenNamespace {
        uid: object.uid().unwrap_or_default(),
        owner: controller.map(|owner| Owner { name: owner.name.clone(), uid: owner.uid.clone() }),
        terminating: object.metadata.deletion_timestamp.is_some(),
        injects_sidecars: has(INJECTION_LABEL, "enabled"),
        ambient: has("istio.io/dataplane-mode", "ambient"),
    }
}

fn rivals(workspace: &Workspace, namespace: &str, others: &Objects<Workspace>) -> Vec<Rival> {
    let same = |other: &Workspace| {
        other.uid() != workspace.uid()
            && other.metadata.deletion_timestamp.is_none()
            && namespace_of(other) == namespace
    };
    let rival = |other: &Workspace| Rival {
        name: other.name_any(),
        uid: other.uid().unwrap_or_default(),
        created: other.creation_timestamp().map_or(Timestamp::MAX, |time| time.0),
    };
    others.filter(same).iter().filter_map(|guard| guard.0.as_ref().ok()).map(rival).collect()
}

/// Both kinds come with one CRD bundle, but appear one after the other.
fn mesh(live: &Live<'_>) -> Presence {
    match (live.presence::<PeerAuthentication>(), live.presence::<AuthorizationPolicy>()) {
        (Presence::Served, Presence::Served) => Presence::Served,
        (Presence::Absent, Presence::Absent) => Presence::Absent,
        _ => Presence::Unknown,
    }
}

fn present(live: &Live<'_>, namespace: &str) -> Vec<Present> {
    fn one<K: Kind>(live: &Live<'_>, namespace: &str, kind: &'static str, name: &str) -> Option<Present> {
        let object = live.get::<K>(namespace, name)?;
        object.metadata.deletion_timestamp.is_none().then(|| Present { kind, name: name.to_owned() })
    }
    let bindings = build::ROLES.map(build::role_binding_name).into_iter().chain([build::RECONCILER.to_owned()]);
    let bindings = bindings.filter_map(|name| one::<RoleBinding>(live, namespace, "RoleBinding", &name));
    let others = [
        one::<ResourceQuota>(live, namespace, "ResourceQuota", build::RESOURCE_QUOTA),
        one::<LimitRange>(live, namespace, "LimitRange", build::LIMIT_RANGE),
        one::<NetworkPolicy>(live, namespace, "NetworkPolicy", build::NETWORK_POLICY),
        one::<PeerAuthentication>(live, namespace, "PeerAuthentication", build::PEER_AUTHENTICATION),
        one::<AuthorizationPolicy>(live, namespace, "AuthorizationPolicy", build::AUTHORIZATION_POLICY),
        one::<ConfigMap>(live, namespace, "ConfigMap", build::CONFIG),
        one::<ServiceAccount>(live, namespace, "ServiceAccount", build::RECONCILER),
    ];
    bindings.chain(others.into_iter().flatten()).collect()
}

fn refusal(failure: &Failure) -> Refusal {
    Refusal {
        kind: failure.kind.clone(),
        name: failure.key.name.clone(),
        category: failure.error.category(),
        text: failure.error.to_string(),
    }
}
