// SPDX-License-Identifier: Apache-2.0
//! The controller of `tenant.otterscale.io` Workspaces: a namespace for a team, with its members' rights, its quota,
//! its limits and its isolation.
//!
//! The way through: [`observe`] reads, [`plan`] decides, [`build`] makes the children, [`reasons`] has the words.
//! [`policies`] is what the API server itself enforces: who may change a Workspace, and what is protected.

pub mod build;
pub mod endpoints;
pub mod observe;
pub mod plan;
pub mod policies;
pub mod reasons;
pub mod tenant;

use std::sync::Arc;

use bivouac_api::tenant::{Workspace, WorkspaceStatus};
use bivouac_engines::{
    gateway::Gateway,
    istio::{AuthorizationPolicy, PeerAuthentication},
};
use bivouac_runtime::{
    Error, Plan, Reconciler, Runtime,
    capabilities::Capabilities,
    mirror::Change,
    reconcile::{self, Children, Live, NoEffect, Objects, Setup},
    registry::{Registration, rule},
};
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{ConfigMap, LimitRange, Namespace, ResourceQuota, ServiceAccount},
    networking::v1::NetworkPolicy,
    rbac::v1::{PolicyRule, RoleBinding},
};
use kube::{
    Resource, ResourceExt,
    core::{DynamicObject, GroupVersionKind},
    runtime::reflector::ObjectRef,
};

use observe::World;
pub use tenant::Settings;

/// Children are found by the label that the Go operator put on them too.
const SELECTOR: &str = "app.kubernetes.io/component=workspace";
const CONCURRENCY: u16 = 32;

/// The controller as the process knows it.
pub fn registration(settings: Settings) -> Registration {
    Registration {
        name: Tenancy::NAME,
        about: "Workspaces: namespaces for teams, with members, quota, limits and isolation",
        apis: || {
            vec![workspace_api(), peer_authentication_api(), authorization_policy_api(), gateway_api(), flux_api()]
        },
        rbac,
        // The Go operator writes the same objects.
        rivals: &[("otterscale-system", "7fe59df2.otterscale.io")],
        run: Arc::new(move |runtime| Box::pin(run(runtime, settings.clone()))),
    }
}

#[derive(Debug)]
struct Tenancy {
    settings: Settings,
    workspaces: Objects<Workspace>,
    capabilities: Capabilities,
}

impl Reconciler for Tenancy {
    const NAME: &'static str = "tenancy";
    /// The Go operator and its successor write without server-side apply, under the names of their binaries.
    const PREDECESSORS: &'static [&'static str] = &["manager", "otterscale-operator", "tenant-operator"];
    type Kind = Workspace;
    type World = World;
    type Status = WorkspaceStatus;
    type Effect = NoEffect;

    async fn observe(&self, workspace: &Workspace, live: &Live<'_>) -> Result<World, Error> {
        let flux = self.capabilities.presence(&flux_api());
        Ok(observe::observe(workspace, live, &self.workspaces, flux))
    }

    fn plan(&self, workspace: &Workspace, world: &World, _now: Timestamp) -> Plan<WorkspaceStatus> {
        plan::plan(workspace, world, &self.settings)
    }

    async fn perform(&self, _: &Workspace, effect: NoEffect) -> Result<(), Error> {
        match effect {}
    }
}

async fn run(runtime: Runtime, settings: Settings) {
    let capabilities = runtime.capabilities.clone();
    reconcile::run(&runtime, move |workspaces| {
        let children = Children::default()
            .precious::<Namespace>()
            .kind::<RoleBinding>(Some(SELECTOR))
            .kind::<ResourceQuota>(Some(SELECTOR))
            .kind::<LimitRange>(Some(SELECTOR))
            .kind::<NetworkPolicy>(Some(SELECTOR))
            .kind::<ServiceAccount>(Some(SELECTOR))
            .optional::<PeerAuthentication>(Some(SELECTOR), &capabilities)
            .optional::<AuthorizationPolicy>(Some(SELECTOR), &capabilities)
            .kind::<ConfigMap>(Some(SELECTOR))
            .reads::<Gateway>(&capabilities);
        let claimants = {
            let workspaces = workspaces.clone();
            children
                .changes::<Namespace>()
                .flat_map(move |change| futures::stream::iter(claimants(&workspaces, &change)))
        };
        let everybody = {
            let workspaces = workspaces.clone();
            children.changes::<Gateway>().flat_map(move |change| futures::stream::iter(concerned(&workspaces, &change)))
        };
        let setup = Setup {
            triggers: vec![claimants.boxed(), everybody.boxed()],
            children,
            concurrency: CONCURRENCY,
            is_new: None,
        };
        (Tenancy { settings, workspaces, capabilities }, setup)
    })
    .await;
}

/// Workspaces that want a namespace which is not theirs: they may have it when it goes.
fn claimants(workspaces: &Objects<Workspace>, change: &Change<DynamicObject>) -> Vec<ObjectRef<Workspace>> {
    if change.after.is_some() {
        return Vec::new();
    }
    let Some(gone) = change.before.as_ref().map(|namespace| namespace.name_any()) else { return Vec::new() };
    let waiting = workspaces.filter(|workspace| tenant::namespace_of(workspace) == gone);
    waiting.iter().map(|workspace| ObjectRef::new(&workspace.name_any())).collect()
}

/// A change of one of the platform's own Gateways concerns every Workspace.
fn concerned(workspaces: &Objects<Workspace>, change: &Change<DynamicObject>) -> Vec<ObjectRef<Workspace>> {
    let platform = [endpoints::SERVICE_GATEWAY, endpoints::MODEL_GATEWAY];
    let is_platform = |gateway: &DynamicObject| {
        platform.contains(&(gateway.namespace().as_deref().unwrap_or_default(), gateway.name_any().as_str()))
    };
    if !change.before.iter().chain(&change.after).any(|gateway| is_platform(gateway)) {
        return Vec::new();
    }
    workspaces.filter(|_| true).iter().map(|workspace| ObjectRef::new(&workspace.name_any())).collect()
}

fn workspace_api() -> GroupVersionKind {
    GroupVersionKind::gvk(&Workspace::group(&()), &Workspace::version(&()), &Workspace::kind(&()))
}

fn peer_authentication_api() -> GroupVersionKind {
    GroupVersionKind::gvk("security.istio.io", "v1", "PeerAuthentication")
}

fn authorization_policy_api() -> GroupVersionKind {
    GroupVersionKind::gvk("security.istio.io", "v1", "AuthorizationPolicy")
}

fn gateway_api() -> GroupVersionKind {
    GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "Gateway")
}

/// Flux is there when its Kustomizations are.
fn flux_api() -> GroupVersionKind {
    GroupVersionKind::gvk("kustomize.toolkit.fluxcd.io", "v1", "Kustomization")
}

/// Exactly what this controller does, and no more.
fn rbac() -> Vec<PolicyRule> {
    const READ: &[&str] = &["list", "watch"];
    const KEEP: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
    let bind = PolicyRule {
        resource_names: Some(["admin", "edit", "view"].map(str::to_owned).to_vec()),
        ..rule(&["rbac.authorization.k8s.io"], &["clusterroles"], &["bind"])
    };
    let rival = PolicyRule {
        resource_names: Some(vec!["7fe59df2.otterscale.io".to_owned()]),
        ..rule(&["coordination.k8s.io"], &["leases"], &["get"])
    };
    vec![
        rule(&["tenant.otterscale.io"], &["workspaces"], READ),
        rule(&["tenant.otterscale.io"], &["workspaces"], &["patch"]),
        rule(&["tenant.otterscale.io"], &["workspaces/status"], &["patch"]),
        // Some clusters ask for this before an owner reference may block the owner's deletion.
        rule(&["tenant.otterscale.io"], &["workspaces/finalizers"], &["update"]),
        // Namespaces are made and labelled, never deleted: that is left to their owner's deletion.
        rule(&[""], &["namespaces"], &["get", "list", "watch", "create", "patch"]),
        rule(&[""], &["resourcequotas", "limitranges", "serviceaccounts", "configmaps"], KEEP),
        rule(&["rbac.authorization.k8s.io"], &["rolebindings"], KEEP),
        bind,
        rule(&["networking.k8s.io"], &["networkpolicies"], KEEP),
        rule(&["security.istio.io"], &["peerauthentications", "authorizationpolicies"], KEEP),
        rule(&["gateway.networking.k8s.io"], &["gateways"], READ),
        rival,
    ]
}
