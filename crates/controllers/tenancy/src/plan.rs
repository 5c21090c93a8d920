// SPDX-License-Identifier: Apache-2.0
//! What a Workspace asks for, and what that means right now. Pure: the only clever file of this controller.

use std::time::Duration;

use bivouac_api::{
    resource_ref::ResourceRef,
    tenant::{Workspace, WorkspaceStatus},
};
use bivouac_runtime::{
    capabilities::Presence,
    reconcile::{Category, Child, Only, OwnLabels, Plan},
};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::{
    build,
    observe::World,
    reasons::{Part, Reason, Standing},
    tenant::{MEMBER_LABEL_PREFIX, Settings, Tenant, member_labels},
};

/// A rival may be deleted before it made the namespace: then no namespace goes away to wake those who wait.
const CLAIMED_AGAIN: Duration = Duration::from_secs(10);

/// Whose namespace is it?
#[derive(Debug, PartialEq, Eq)]
enum Claim {
    /// Nobody has it and nobody older wants it.
    Free,
    /// It is ours; its UID.
    Ours(String),
    Refused(Reason),
}

pub fn plan(workspace: &Workspace, world: &World, settings: &Settings) -> Plan<WorkspaceStatus> {
    let tenant = Tenant::of(workspace, settings);
    let only = match claim(&tenant, workspace, world) {
        Claim::Free => Only::IfAbsent,
        Claim::Ours(uid) => Only::IfUid(uid),
        Claim::Refused(reason) => {
            let requeue = matches!(reason, Reason::NamespaceClaimed { .. }).then_some(CLAIMED_AGAIN);
            return Plan {
                prune: false,
                requeue,
                ..tell(workspace, &waiting(world), WorkspaceStatus::default(), &reason)
            };
        }
    };
    let wanted = Plan {
        stages: vec![
            vec![Child::of(&build::namespace(&tenant, inject_sidecars(world))).only(only)],
            inside(&tenant, world),
        ],
        // While it is unknown whether an API is served, nothing is removed on its account.
        prune: [world.mesh, world.flux, world.gateways].iter().all(|presence| *presence != Presence::Unknown),
        ..Plan::default()
    };
    if !world.refusals.is_empty() && world.refusals.iter().all(|refusal| refusal.category == Category::Conflict) {
        // Somebody was faster; the next look decides, and there is nothing to tell yet.
        return wanted;
    }
    let reason = match world.refusals.first() {
        Some(refusal) => Reason::ReconcileError { what: refusal.text.clone() },
        None => Reason::Reconciled { namespace: tenant.namespace.clone() },
    };
    let told = tell(workspace, &standings(&tenant, world), status(&tenant, world), &reason);
    Plan { stages: wanted.stages, prune: wanted.prune, ..told }
}

/// A namespace belongs to the Workspace that controls it; a free one to the oldest Workspace that wants it.
fn claim(tenant: &Tenant<'_>, workspace: &Workspace, world: &World) -> Claim {
    let namespace = tenant.namespace.clone();
    match &world.namespace {
        Some(seen) if seen.owner.as_ref().is_some_and(|owner| owner.uid == tenant.uid) => {
            if seen.terminating {
                Claim::Refused(Reason::NamespaceTerminating { namespace })
            } else {
                Claim::Ours(seen.uid.clone())
            }
        }
        Some(seen) => Claim::Refused(Reason::NamespaceConflict {
            namespace,
            owner: seen.owner.as_ref().map(|owner| owner.name.clone()),
        }),
        None => {
            let created = workspace.creation_timestamp().map_or(Timestamp::MAX, |time| time.0);
            let age = (created, tenant.uid.as_str());
            let older = world.rivals.iter().filter(|rival| (rival.created, rival.uid.as_str()) < age);
            match older.min_by_key(|rival| (rival.created, rival.uid.clone())) {
                Some(rival) => Claim::Refused(Reason::NamespaceClaimed { namespace, rival: rival.name.clone() }),
                None => Claim::Free,
            }
        }
    }
}

/// Everything in the namespace. What is no longer here is removed after all of it stands, so that a change of
/// isolation leaves no moment without any.
fn inside(tenant: &Tenant<'_>, world: &World) -> Vec<Child> {
    let mut inside: Vec<Child> = tenant
        .members
        .iter()
        .map(|(role, subjects)| Child::of(&build::role_binding(tenant, *role, subjects)))
        .collect();
    inside.extend(tenant.quota.map(|spec| Child::of(&build::resource_quota(tenant, spec))));
    inside.extend(tenant.limits.map(|spec| Child::of(&build::limit_range(tenant, spec))));
    if let Some(isolation) = &tenant.isolation {
        let mesh = world.mesh == Presence::Served;
        // The NetworkPolicy stays beside a mesh: pods without a sidecar are in no mesh.
        // Not knowing keeps the sidecars' way to the mesh open.
        inside.push(Child::of(&build::network_policy(tenant, isolation, world.mesh != Presence::Absent)));
        if mesh {
            inside.push(Child::of(&build::peer_authentication(tenant)));
            inside.push(Child::of(&build::authorization_policy(tenant, isolation)));
        }
    }
    if !world.endpoints.is_empty() {
        inside.push(Child::of(&build::config(tenant, &world.endpoints)));
    }
    if world.flux == Presence::Served {
        inside.push(Child::of(&build::reconciler_account(tenant)));
        inside.push(Child::of(&build::reconciler_binding(tenant)));
    }
    inside
}

/// With a mesh, pods get sidecars. Not knowing leaves the label as it is; ambient meshes have none.
fn inject_sidecars(world: &World) -> bool {
    let seen = world.namespace.as_ref();
    match world.mesh {
        Presence::Served => !seen.is_some_and(|namespace| namespace.ambient),
        Presence::Absent => false,
        Presence::Unknown => seen.is_some_and(|namespace| namespace.injects_sidecars),
    }
}

/// How every part stands, from what is there and what was refused.
fn standings<'a>(tenant: &Tenant<'_>, world: &'a World) -> Vec<(Part, Standing<'a>)> {
    let of = |part: Part| {
        let wanted = wanted(part, tenant, world);
        let refused = world.refusals.iter().find(|refusal| {
            part == Part::Namespace && refusal.kind == "Namespace"
                || wanted.iter().any(|(kind, name)| refusal.kind == *kind && refusal.name == *name)
        });
        let missing = wanted.iter().find(|(kind, name)| !world.has(kind, name));
        if let Some(refusal) = refused {
            Standing::Refused(refusal)
        } else if part == Part::Reconciler && world.flux != Presence::Served {
            Standing::ApiMissing("Flux")
        } else if part == Part::Endpoints && world.gateways != Presence::Served {
            Standing::ApiMissing("the Gateway API")
        } else if wanted.is_empty() && part != Part::Namespace {
            Standing::NotRequested
        } else if missing.is_some() || world.namespace.is_none() {
            Standing::Waiting("the parts before it")
        } else {
            Standing::Stands(names(&wanted, &tenant.namespace))
        }
    };
    Part::ALL.into_iter().map(|part| (part, of(part))).collect()
}

/// The children that make up a part, as (kind, name).
fn wanted(part: Part, tenant: &Tenant<'_>, world: &World) -> Vec<(&'static str, String)> {
    let one =
        |wanted: bool, kind: &'static str, name: &str| wanted.then(|| (kind, name.to_owned())).into_iter().collect();
    let mesh = tenant.isolation.is_some() && world.mesh == Presence::Served;
    match part {
        Part::Namespace => Vec::new(),
        Part::Members => tenant.members.keys().map(|role| ("RoleBinding", build::role_binding_name(*role))).collect(),
        Part::Quota => one(tenant.quota.is_some(), "ResourceQuota", build::RESOURCE_QUOTA),
        Part::Limits => one(tenant.limits.is_some(), "LimitRange", build::LIMIT_RANGE),
        Part::Isolation => [
            (tenant.isolation.is_some(), "NetworkPolicy", build::NETWORK_POLICY),
            (mesh, "PeerAuthentication", build::PEER_AUTHENTICATION),
            (mesh, "AuthorizationPolicy", build::AUTHORIZATION_POLICY),
        ]
        .into_iter()
        .filter(|(wanted, ..)| *wanted)
        .map(|(_, kind, name)| (kind, name.to_owned()))
        .collect(),
        Part::Reconciler if world.flux == Presence::Served => {
            vec![("ServiceAccount", build::RECONCILER.to_owned()), ("RoleBinding", build::RECONCILER.to_owned())]
        }
        Part::Reconciler => Vec::new(),
        Part::Endpoints => one(!world.endpoints.is_empty(), "ConfigMap", build::CONFIG),
    }
}

fn names(children: &[(&'static str, String)], namespace: &str) -> String {
    if children.is_empty() {
        return format!("Namespace {namespace}");
    }
    children.iter().map(|(kind, name)| format!("{kind} {name}")).collect::<Vec<_>>().join(", ")
}

/// Without a namespace of our own nothing else can stand.
fn waiting(world: &World) -> Vec<(Part, Standing<'_>)> {
    Part::ALL
        .into_iter()
        .map(|part| match part {
            Part::Reconciler if world.flux != Presence::Served => (part, Standing::ApiMissing("Flux")),
            Part::Endpoints if world.gateways != Presence::Served => (part, Standing::ApiMissing("the Gateway API")),
            _ => (part, Standing::Waiting("a namespace of its own")),
        })
        .collect()
}

/// References to what exists, not to what should.
fn status(tenant: &Tenant<'_>, world: &World) -> WorkspaceStatus {
    let inside = |kind: &str, name: &str| {
        world.has(kind, name).then(|| ResourceRef { name: name.to_owned(), namespace: Some(tenant.namespace.clone()) })
    };
    let bindings = build::ROLES.into_iter().filter(|role| tenant.members.contains_key(role));
    let bindings = bindings.filter_map(|role| inside("RoleBinding", &build::role_binding_name(role)));
    WorkspaceStatus {
        namespace_ref: world
            .namespace
            .as_ref()
            .map(|_| ResourceRef { name: tenant.namespace.clone(), namespace: None }),
        role_binding_refs: bindings.collect(),
        resource_quota_ref: tenant.quota.and_then(|_| inside("ResourceQuota", build::RESOURCE_QUOTA)),
        limit_range_ref: tenant.limits.and_then(|_| inside("LimitRange", build::LIMIT_RANGE)),
        network_policy_ref: tenant.isolation.as_ref().and_then(|_| inside("NetworkPolicy", build::NETWORK_POLICY)),
        peer_authentication_ref: tenant
            .isolation
            .as_ref()
            .and_then(|_| inside("PeerAuthentication", build::PEER_AUTHENTICATION)),
        authorization_policy_ref: tenant
            .isolation
            .as_ref()
            .and_then(|_| inside("AuthorizationPolicy", build::AUTHORIZATION_POLICY)),
        config_map_ref: inside("ConfigMap", build::CONFIG),
        service_account_ref: inside("ServiceAccount", build::RECONCILER),
        ..WorkspaceStatus::default()
    }
}

/// The words around a plan: conditions for every part, one sentence for the whole, and an event.
fn tell(
    workspace: &Workspace,
    standings: &[(Part, Standing<'_>)],
    status: WorkspaceStatus,
    reason: &Reason,
) -> Plan<WorkspaceStatus> {
    let mut conditions: Vec<_> = standings.iter().map(|(part, standing)| standing.verdict(*part)).collect();
    conditions.push(reason.ready());
    Plan {
        labels: Some(OwnLabels { prefix: MEMBER_LABEL_PREFIX, labels: member_labels(workspace) }),
        status: Some(WorkspaceStatus { observed_generation: workspace.metadata.generation, ..status }),
        conditions,
        events: vec![reason.event()],
        ..Plan::default()
    }
}
