// SPDX-License-Identifier: Apache-2.0
//! The children of each fixture, word for word. `INSTA_UPDATE=always cargo test` writes the goldens anew.

use bivouac_api::tenant::{MemberKind, Role, Workspace};
use bivouac_runtime::capabilities::Presence::{Absent, Served};
use bivouac_tenancy::{
    observe::World,
    plan::plan,
    tenant::{PROTECTION_ANNOTATION, member_labels},
};
use serde_json::json;

use crate::fixtures::{empty, member, planned, settings, spec, typed, workspace};

/// The golden holds every child and the labels of the Workspace itself.
fn golden(name: &str, workspace: &Workspace, world: &World) {
    let plan = plan(workspace, world, &settings());
    let children: Vec<_> = plan.children().map(|child| &child.body).collect();
    let all = json!({"workspaceLabels": member_labels(workspace), "children": children});
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_yaml_snapshot!(name, all);
    });
}

#[test]
fn the_smallest_workspace_has_a_namespace_and_an_admin() {
    golden("smallest", &workspace(spec("")), &empty());
}

#[test]
fn a_full_workspace_has_everything() {
    let mut full = workspace(spec(FULL));
    full.spec.members.push(member(Role::Edit, "bob"));
    full.spec.members.push(member(Role::View, "eve"));
    full.metadata.annotations = Some([(PROTECTION_ANNOTATION.to_owned(), "true".to_owned())].into());
    golden("full", &full, &World { mesh: Served, flux: Served, ..empty() });
}

const FULL: &str = "
resourceQuota: {hard: {requests.cpu: '8', requests.memory: 16Gi, requests.nvidia.com/gpu: '4'}}
limitRange: {limits: [{type: Container, default: {cpu: 500m}, defaultRequest: {cpu: 100m}}]}
networkIsolation: {enabled: true, allowedNamespaces: [monitoring, ingress]}
podSecurity: {enforce: baseline, warn: restricted, audit: restricted}
rancherProjectID: c-m-1:p-2
licenseInjection: true
";

#[test]
fn groups_service_accounts_and_mail_addresses_are_members() {
    let mut mixed = workspace(spec(""));
    mixed.spec.members.extend([
        typed(Role::Edit, MemberKind::Group, "oidc:research"),
        typed(Role::Edit, MemberKind::ServiceAccount, "system:serviceaccount:ci:deployer"),
        typed(Role::Edit, MemberKind::User, "bob@example.com"),
        member(Role::View, "system:serviceaccount:ci:reader"),
    ]);
    golden("subjects", &mixed, &empty());
}

#[test]
fn egress_isolation_closes_the_way_out() {
    let closed = "
networkIsolation:
  enabled: true
  allowedNamespaces: [ingress]
  egress: {enabled: true, allowedNamespaces: [databases], allowedCIDRs: [10.20.0.0/16, 'fd00::/8']}
";
    golden("egress", &workspace(spec(closed)), &empty());
    golden("egress_with_mesh", &workspace(spec(closed)), &World { mesh: Served, ..empty() });
    let without_dns = "networkIsolation: {enabled: true, egress: {enabled: true, allowDNS: false}}";
    golden("egress_without_dns", &workspace(spec(without_dns)), &empty());
}

#[test]
fn a_mesh_adds_its_own_policies() {
    let isolated = workspace(spec("networkIsolation: {enabled: true, allowedNamespaces: [ingress]}"));
    golden("mesh", &isolated, &World { mesh: Served, ..empty() });
    golden("mesh_without_isolation", &workspace(spec("")), &World { mesh: Served, ..empty() });
}

#[test]
fn flux_gets_an_account_for_this_namespace_only() {
    golden("flux", &workspace(spec("")), &World { flux: Served, ..empty() });
}

#[test]
fn pod_security_levels_are_labels_and_absent_ones_are_not() {
    golden("pod_security", &workspace(spec("podSecurity: {enforce: restricted}")), &empty());
}

#[test]
fn a_name_longer_than_a_label_value_is_hashed() {
    let mut long = workspace(spec(""));
    long.metadata.name = Some(format!("{}.{}", "a".repeat(200), "b".repeat(52)));
    golden("long_name", &long, &empty());
}

#[test]
fn unicode_is_kept_where_it_may_stand_and_hashed_where_not() {
    let mut unicode = workspace(spec(""));
    unicode.spec.members[0].name = Some("Ada Łovelace 🌲".into());
    unicode.spec.members.push(member(Role::View, "王小明"));
    golden("unicode", &unicode, &empty());
}

#[test]
fn a_namespace_is_derived_when_none_is_asked_for() {
    let mut derived = workspace(spec(""));
    derived.spec.namespace = None;
    golden("derived", &derived, &empty());
    let mut blank = derived.clone();
    blank.spec.namespace = Some(String::new());
    assert_eq!(stages_of(&derived), stages_of(&blank), "an empty wish is no wish");
    let mut other = derived.clone();
    other.metadata.uid = Some("b7d1c1a0-0000-4000-8000-000000000002".into());
    assert_ne!(stages_of(&derived)[0], stages_of(&other)[0]);
}

fn stages_of(workspace: &Workspace) -> Vec<Vec<String>> {
    crate::fixtures::stages(&plan(workspace, &empty(), &settings()))
}

#[test]
fn an_ambient_namespace_gets_no_sidecars() {
    let mut world = crate::fixtures::settled(Served, Absent);
    world.namespace.as_mut().unwrap().ambient = true;
    let plan = planned(spec(""), &world);
    assert_eq!(plan.stages[0][0].body["metadata"]["labels"].get("istio-injection"), None);
}
