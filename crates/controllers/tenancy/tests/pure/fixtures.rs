// SPDX-License-Identifier: Apache-2.0
//! Workspaces and worlds to plan for. Each starts plain; a test says only what is special.

use bivouac_api::tenant::{Member, MemberKind, Role, Workspace, WorkspaceSpec, WorkspaceStatus};
use bivouac_runtime::{
    Plan,
    capabilities::Presence,
    reconcile::{Category, Verdict},
};
use bivouac_tenancy::{
    Settings, build,
    endpoints::Endpoints,
    observe::{Owner, Present, Refusal, Rival, SeenNamespace, World},
    plan::plan,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub const UID: &str = "b7d1c1a0-0000-4000-8000-000000000001";
pub const NAMESPACE_UID: &str = "b7d1c1a0-0000-4000-8000-0000000000aa";

pub fn member(role: Role, subject: &str) -> Member {
    Member { role, subject: subject.into(), ..Member::default() }
}

pub fn typed(role: Role, kind: MemberKind, subject: &str) -> Member {
    Member { kind: Some(kind), ..member(role, subject) }
}

/// A spec as a person would write it, with the namespace `team` and one admin.
pub fn spec(yaml: &str) -> WorkspaceSpec {
    serde_saphyr::from_str(&format!("namespace: team\nmembers: [{{role: admin, subject: ada}}]\n{yaml}")).unwrap()
}

pub fn workspace(spec: WorkspaceSpec) -> Workspace {
    let mut workspace = Workspace::new("team", spec);
    workspace.metadata.uid = Some(UID.into());
    workspace.metadata.generation = Some(7);
    workspace.metadata.creation_timestamp = Some(Time(at(100)));
    workspace
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Nothing exists, nobody else wants anything, and no optional API is served.
pub fn empty() -> World {
    World {
        namespace: None,
        rivals: Vec::new(),
        present: Vec::new(),
        mesh: Presence::Absent,
        flux: Presence::Absent,
        gateways: Presence::Absent,
        endpoints: Endpoints::default(),
        refusals: Vec::new(),
    }
}

/// Our namespace stands and so does everything that could be in it.
pub fn settled(mesh: Presence, flux: Presence) -> World {
    let roles = build::ROLES.map(|role| ("RoleBinding", build::role_binding_name(role)));
    let others = [
        ("ResourceQuota", build::RESOURCE_QUOTA),
        ("LimitRange", build::LIMIT_RANGE),
        ("NetworkPolicy", build::NETWORK_POLICY),
        ("PeerAuthentication", build::PEER_AUTHENTICATION),
        ("AuthorizationPolicy", build::AUTHORIZATION_POLICY),
        ("ServiceAccount", build::RECONCILER),
        ("RoleBinding", build::RECONCILER),
    ];
    let others = others.map(|(kind, name)| (kind, name.to_owned()));
    let present = roles.into_iter().chain(others).map(|(kind, name)| Present { kind, name }).collect();
    World { namespace: Some(ours()), present, mesh, flux, ..empty() }
}

pub fn ours() -> SeenNamespace {
    SeenNamespace {
        uid: NAMESPACE_UID.into(),
        owner: Some(Owner { name: "team".into(), uid: UID.into() }),
        terminating: false,
        injects_sidecars: false,
        ambient: false,
    }
}

pub fn rival(name: &str, uid: &str, second: i64) -> Rival {
    Rival { name: name.into(), uid: uid.into(), created: at(second) }
}

pub fn refusal(kind: &str, name: &str, category: Category) -> Refusal {
    Refusal { kind: kind.into(), name: name.into(), category, text: format!("cannot apply {kind} {name}: no") }
}

pub fn settings() -> Settings {
    Settings { version: "1.2.3".into(), ..Settings::default() }
}

pub fn planned(spec: WorkspaceSpec, world: &World) -> Plan<WorkspaceStatus> {
    plan(&workspace(spec), world, &settings())
}

/// Every stage as `Kind name` words.
pub fn stages(plan: &Plan<WorkspaceStatus>) -> Vec<Vec<String>> {
    let word = |child: &bivouac_runtime::reconcile::Child| format!("{} {}", child.resource.kind, child.key.name);
    plan.stages.iter().map(|stage| stage.iter().map(word).collect()).collect()
}

pub fn verdict<'a>(plan: &'a Plan<WorkspaceStatus>, type_: &str) -> &'a Verdict {
    plan.conditions.iter().find(|verdict| verdict.type_ == type_).unwrap()
}

/// A condition as `True/Applied`.
pub fn said(plan: &Plan<WorkspaceStatus>, type_: &str) -> String {
    let verdict = verdict(plan, type_);
    format!("{}/{}", verdict.status.as_str(), verdict.reason)
}
