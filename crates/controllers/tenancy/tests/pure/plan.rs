// SPDX-License-Identifier: Apache-2.0
//! What a Workspace means in each kind of world.

use bivouac_api::tenant::Role;
use bivouac_runtime::{
    capabilities::Presence::{self, Absent, Served, Unknown},
    reconcile::{Category, Only},
};
use bivouac_tenancy::{
    build::CONFIG,
    endpoints::Endpoints,
    observe::{Owner, Present, SeenNamespace, World},
    plan::plan,
};

use crate::fixtures::*;

const ISOLATED: &str = "networkIsolation: {enabled: true}";
const EGRESS: &str = "networkIsolation: {enabled: true, egress: {enabled: true}}";
const LIMITED: &str = "resourceQuota: {hard: {pods: '5'}}\nlimitRange: {limits: [{type: Pod, max: {cpu: '1'}}]}";

const PARTS: [&str; 7] = [
    "NamespaceReady",
    "MembersReady",
    "QuotaReady",
    "LimitsReady",
    "IsolationReady",
    "ReconcilerReady",
    "EndpointsReady",
];

// === Whose namespace ===

#[test]
fn a_free_namespace_is_made_but_never_taken_over() {
    let plan = planned(spec(""), &empty());
    assert_eq!(stages(&plan), [vec!["Namespace team"], vec!["RoleBinding workspace-role-binding-admin"]]);
    assert_eq!(plan.stages[0][0].only, Only::IfAbsent);
    assert!(plan.prune);
    assert_eq!(said(&plan, "NamespaceReady"), "False/Waiting");
}

#[test]
fn our_namespace_is_kept_by_its_uid() {
    let plan = planned(spec(""), &settled(Absent, Absent));
    assert_eq!(plan.stages[0][0].only, Only::IfUid(NAMESPACE_UID.into()));
    assert_eq!(said(&plan, "Ready"), "True/Reconciled");
    assert!(plan.prune);
}

#[test]
fn a_namespace_on_its_way_out_is_waited_for() {
    let namespace = SeenNamespace { terminating: true, ..ours() };
    refused(&World { namespace: Some(namespace), ..empty() }, "NamespaceTerminating", "made again when it is gone");
}

#[test]
fn a_foreign_namespace_is_left_alone() {
    let namespace = SeenNamespace { owner: None, ..ours() };
    refused(&World { namespace: Some(namespace), ..empty() }, "NamespaceConflict", "is not ours");
}

#[test]
fn a_namespace_of_another_workspace_names_its_owner() {
    let owner = Owner { name: "other".into(), uid: "another".into() };
    let namespace = SeenNamespace { owner: Some(owner), ..ours() };
    refused(&World { namespace: Some(namespace), ..empty() }, "NamespaceConflict", "belongs to Workspace other");
}

#[test]
fn a_namesake_of_ours_in_an_earlier_life_is_a_stranger() {
    let owner = Owner { name: "team".into(), uid: "the life before".into() };
    let namespace = SeenNamespace { owner: Some(owner), ..ours() };
    refused(&World { namespace: Some(namespace), ..empty() }, "NamespaceConflict", "belongs to Workspace team");
}

#[test]
fn the_oldest_claim_wins_and_the_uid_decides_between_equals() {
    let claimed = |rivals| World { rivals, ..empty() };
    refused(&claimed(vec![rival("elder", "z", 99)]), "NamespaceClaimed", "by the older Workspace elder");
    refused(&claimed(vec![rival("twin", "a", 100)]), "NamespaceClaimed", "by the older Workspace twin");
    let two = vec![rival("second", "y", 98), rival("first", "z", 97), rival("junior", "a", 101)];
    refused(&claimed(two), "NamespaceClaimed", "by the older Workspace first");

    for junior in [rival("junior", "a", 101), rival("twin", "z", 100)] {
        let plan = planned(spec(""), &claimed(vec![junior]));
        assert_eq!(plan.stages[0][0].only, Only::IfAbsent);
    }
}

#[test]
fn a_claimed_namespace_is_asked_for_again() {
    // The elder may be deleted before it made the namespace; no namespace then goes away to wake this one.
    let plan = planned(spec(""), &World { rivals: vec![rival("elder", "z", 99)], ..empty() });
    assert!(plan.requeue.is_some());
    assert!(planned(spec(""), &settled(Absent, Absent)).requeue.is_none());
}

/// Nothing is written, nothing is removed, no reference is shown, and the reason is told in full.
fn refused(world: &World, reason: &str, words: &str) {
    let plan = planned(spec(LIMITED), world);
    assert!(plan.stages.is_empty() && !plan.prune, "{plan:?}");
    assert_eq!(said(&plan, "Ready"), format!("False/{reason}"));
    assert!(verdict(&plan, "Ready").message.contains(words), "{:?}", verdict(&plan, "Ready"));
    // Two parts depend on APIs that this world does not serve.
    for part in PARTS.into_iter().filter(|part| !["ReconcilerReady", "EndpointsReady"].contains(part)) {
        assert_eq!(said(&plan, part), "False/Waiting", "{part}");
    }
    let status = plan.status.as_ref().unwrap();
    assert_eq!(status.observed_generation, Some(7));
    assert!(
        status.namespace_ref.is_none() && status.role_binding_refs.is_empty() && status.resource_quota_ref.is_none()
    );
    assert!(plan.events[0].warning);
    assert_eq!(
        (plan.events[0].reason, plan.events[0].text.as_str()),
        (reason, verdict(&plan, "Ready").message.as_str())
    );
}

// === What is told ===

#[test]
fn a_settled_workspace_refers_to_what_exists() {
    let mut spec = spec(&format!("{LIMITED}\n{ISOLATED}"));
    spec.members.extend([member(Role::View, "eve"), member(Role::Edit, "bob")]);
    let endpoints = Endpoints { service: Some("10.0.0.1".into()), model: None };
    let mut world = World { gateways: Served, endpoints, ..settled(Served, Served) };
    world.present.push(Present { kind: "ConfigMap", name: CONFIG.into() });
    let plan = planned(spec, &world);
    for part in PARTS {
        assert_eq!(said(&plan, part), "True/Applied", "{part}");
    }
    assert_eq!(said(&plan, "Ready"), "True/Reconciled");
    assert_eq!((plan.events.len(), plan.events[0].warning, plan.events[0].reason), (1, false, "Reconciled"));
    let status = plan.status.unwrap();
    let names: Vec<&str> = status.role_binding_refs.iter().map(|binding| binding.name.as_str()).collect();
    assert_eq!(names, ["admin", "edit", "view"].map(|role| format!("workspace-role-binding-{role}")));
    let namespace = status.namespace_ref.unwrap();
    assert_eq!((namespace.name.as_str(), namespace.namespace), ("team", None));
    let inside = [
        (status.resource_quota_ref, "workspace-resource-quota"),
        (status.limit_range_ref, "workspace-limit-range"),
        (status.network_policy_ref, "workspace-network-policy"),
        (status.peer_authentication_ref, "workspace-peer-authentication"),
        (status.authorization_policy_ref, "workspace-authorization-policy"),
        (status.service_account_ref, "workspace-reconciler"),
        (status.config_map_ref, "workspace-config"),
    ];
    for (reference, name) in inside {
        let reference = reference.unwrap_or_else(|| panic!("no reference to {name}"));
        assert_eq!((reference.name.as_str(), reference.namespace.as_deref()), (name, Some("team")));
    }
}

#[test]
fn a_part_that_is_not_there_yet_is_not_claimed_to_be() {
    let mut world = settled(Absent, Absent);
    world.present.retain(|child| child.kind != "ResourceQuota");
    let plan = planned(spec(LIMITED), &world);
    assert_eq!(said(&plan, "QuotaReady"), "False/Waiting");
    assert_eq!(said(&plan, "LimitsReady"), "True/Applied");
    let status = plan.status.unwrap();
    assert!(status.resource_quota_ref.is_none() && status.limit_range_ref.is_some());
}

#[test]
fn what_is_no_longer_asked_for_is_neither_planned_nor_referred_to() {
    let plan = planned(spec(""), &settled(Absent, Absent));
    assert_eq!(stages(&plan)[1], ["RoleBinding workspace-role-binding-admin"]);
    assert!(plan.prune, "so the quota, the limits and the policy go");
    for part in ["QuotaReady", "LimitsReady", "IsolationReady"] {
        assert_eq!(said(&plan, part), "True/NotRequested", "{part}");
    }
    let status = plan.status.unwrap();
    assert_eq!(status.role_binding_refs.len(), 1);
    assert!(
        status.resource_quota_ref.is_none() && status.limit_range_ref.is_none() && status.network_policy_ref.is_none()
    );
}

#[test]
fn the_same_member_twice_is_one_subject_and_one_label() {
    let mut spec = spec("");
    spec.members.extend([member(Role::Admin, "ada"), member(Role::View, "ada")]);
    let plan = planned(spec, &settled(Absent, Absent));
    let subjects = |at: usize| plan.stages[1][at].body["subjects"].as_array().unwrap().len();
    assert_eq!((plan.stages[1].len(), subjects(0), subjects(1)), (2, 1, 1));
    assert_eq!(plan.labels.unwrap().labels.len(), 1);
}

// === Optional APIs ===

#[test]
fn isolation_beside_a_mesh() {
    const POLICY: &str = "NetworkPolicy workspace-network-policy";
    const PEER: &str = "PeerAuthentication workspace-peer-authentication";
    const AUTHORIZATION: &str = "AuthorizationPolicy workspace-authorization-policy";
    let none: &[&str] = &[];
    // isolation, mesh, label seen → children, label wanted, prune
    type Row = (&'static str, Presence, bool, &'static [&'static str], bool, bool);
    let table: [Row; 9] = [
        ("", Absent, false, none, false, true),
        ("", Served, false, none, true, true),
        ("", Unknown, true, none, true, false),
        (ISOLATED, Absent, false, &[POLICY], false, true),
        (ISOLATED, Absent, true, &[POLICY], false, true),
        (ISOLATED, Served, false, &[POLICY, PEER, AUTHORIZATION], true, true),
        (ISOLATED, Served, true, &[POLICY, PEER, AUTHORIZATION], true, true),
        (ISOLATED, Unknown, false, &[POLICY], false, false),
        (ISOLATED, Unknown, true, &[POLICY], true, false),
    ];
    for row @ (yaml, mesh, seen, children, injects, prune) in table {
        let mut world = settled(mesh, Absent);
        world.namespace.as_mut().unwrap().injects_sidecars = seen;
        let plan = planned(spec(yaml), &world);
        assert_eq!(stages(&plan)[1][1..], *children, "{row:?}");
        let label = &plan.stages[0][0].body["metadata"]["labels"]["istio-injection"];
        assert_eq!((label == "enabled", plan.prune), (injects, prune), "{row:?}");
    }
}

#[test]
fn not_knowing_the_mesh_keeps_its_way_out_open() {
    let policy = |mesh| planned(spec(EGRESS), &settled(mesh, Absent)).stages[1][1].body.clone();
    assert_eq!(policy(Unknown), policy(Served), "sidecars must still reach their control plane");
    assert_ne!(policy(Absent), policy(Served));
}

#[test]
fn the_account_for_flux_waits_for_flux() {
    let plan = planned(spec(""), &settled(Absent, Served));
    assert_eq!(stages(&plan)[1][1..], ["ServiceAccount workspace-reconciler", "RoleBinding workspace-reconciler"]);
    assert_eq!(said(&plan, "ReconcilerReady"), "True/Applied");

    let plan = planned(spec(""), &settled(Absent, Absent));
    assert_eq!((stages(&plan)[1].len(), plan.prune), (1, true));
    assert_eq!(said(&plan, "ReconcilerReady"), "True/ApiMissing");
    assert!(verdict(&plan, "ReconcilerReady").message.contains("Flux"));

    let plan = planned(spec(""), &settled(Absent, Unknown));
    assert_eq!((stages(&plan)[1].len(), plan.prune), (1, false), "not knowing removes nothing");
}

// === Refusals ===

#[test]
fn a_refused_binding_is_the_members_trouble_only() {
    let mut world = settled(Absent, Absent);
    world.refusals = vec![refusal("RoleBinding", "workspace-role-binding-admin", Category::Forbidden)];
    let plan = planned(spec(LIMITED), &world);
    assert_eq!(said(&plan, "MembersReady"), "False/Forbidden");
    assert_eq!(said(&plan, "Ready"), "False/ReconcileError");
    assert!(verdict(&plan, "Ready").message.contains("workspace-role-binding-admin"));
    for part in ["NamespaceReady", "QuotaReady", "LimitsReady"] {
        assert_eq!(said(&plan, part), "True/Applied", "{part}");
    }
    assert!(plan.events[0].warning);
    assert_eq!(plan.events[0].reason, "ReconcileError");
}

#[test]
fn a_refused_binding_for_flux_is_not_the_members_trouble() {
    let mut world = settled(Absent, Served);
    world.refusals = vec![refusal("RoleBinding", "workspace-reconciler", Category::Invalid)];
    let plan = planned(spec(""), &world);
    assert_eq!(said(&plan, "MembersReady"), "True/Applied");
    assert_eq!(said(&plan, "ReconcilerReady"), "False/Invalid");
}

#[test]
fn a_refused_namespace_leaves_the_rest_waiting() {
    let world = World { refusals: vec![refusal("Namespace", "team", Category::Forbidden)], ..empty() };
    let plan = planned(spec(LIMITED), &world);
    assert_eq!(said(&plan, "NamespaceReady"), "False/Forbidden");
    assert_eq!(said(&plan, "MembersReady"), "False/Waiting");
    assert_eq!(said(&plan, "QuotaReady"), "False/Waiting");
    assert_eq!(said(&plan, "Ready"), "False/ReconcileError");
    assert_eq!(plan.status.unwrap().namespace_ref, None);
}

#[test]
fn a_lost_race_is_not_worth_a_word() {
    let conflict = refusal("Namespace", "team", Category::Conflict);
    let plan = planned(spec(""), &World { refusals: vec![conflict.clone()], ..empty() });
    assert!(plan.status.is_none() && plan.conditions.is_empty() && plan.events.is_empty());
    assert_eq!(stages(&plan).len(), 2, "but it is tried again");

    let forbidden = refusal("RoleBinding", "workspace-role-binding-admin", Category::Forbidden);
    let plan = planned(spec(""), &World { refusals: vec![conflict, forbidden], ..empty() });
    assert_eq!(said(&plan, "MembersReady"), "False/Forbidden", "a real refusal beside it is told");
}

#[test]
fn a_failed_removal_is_told() {
    let mut world = settled(Absent, Absent);
    world.refusals = vec![refusal("ResourceQuota", "workspace-resource-quota", Category::Forbidden)];
    let plan = plan(&workspace(spec("")), &world, &settings());
    assert_eq!(said(&plan, "Ready"), "False/ReconcileError");
}

#[test]
fn the_endpoints_of_the_platform_are_told_to_the_namespace() {
    let endpoints = Endpoints { service: Some("10.0.0.1".into()), model: None };
    let mut world = World { gateways: Presence::Served, endpoints, ..settled(Presence::Absent, Presence::Absent) };
    let plan = planned(spec(""), &world);
    let config = plan.children().find(|child| child.resource.kind == "ConfigMap").expect("a ConfigMap is planned");
    assert_eq!(config.body["data"], serde_json::json!({"ServiceEndpoint": "10.0.0.1"}));
    assert!(plan.status.expect("told").config_map_ref.is_none(), "it is not there yet");
    world.present.push(Present { kind: "ConfigMap", name: CONFIG.into() });
    assert!(planned(spec(""), &world).status.expect("told").config_map_ref.is_some());
    world.endpoints = Endpoints::default();
    let plan = planned(spec(""), &world);
    assert!(plan.children().all(|child| child.resource.kind != "ConfigMap"), "nothing resolves, so it goes");
    assert!(plan.prune);
}
