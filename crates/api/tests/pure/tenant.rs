// SPDX-License-Identifier: Apache-2.0
//! Group `tenant.otterscale.io`.

use bivouac_api::tenant::{Egress, Member, MemberKind, NetworkIsolation, Role, Workspace, WorkspaceSpec};
use serde_json::json;

use crate::kinds::{crd, face, schema};
use crate::samples::{samples, survives};

const CRD: &str = "workspaces.tenant.otterscale.io";

fn member(role: Role, subject: &str) -> Member {
    Member { role, subject: subject.into(), ..Member::default() }
}

fn workspace(edit: impl FnOnce(&mut WorkspaceSpec)) -> Workspace {
    let mut spec = WorkspaceSpec {
        namespace: Some("team".into()),
        members: vec![member(Role::Admin, "ada")],
        ..WorkspaceSpec::default()
    };
    edit(&mut spec);
    Workspace::new("team", spec)
}

/// What is said against the workspace; empty when nothing is.
fn refusal(edit: impl FnOnce(&mut WorkspaceSpec)) -> String {
    workspace(edit).validate_cel().err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn face_is_upstreams_with_a_reason() {
    assert_eq!(face(CRD), ["Cluster", "", "Namespace, Ready, [Reason], Age"]);
    assert_eq!(crd(CRD).spec.names.categories.unwrap(), ["otterscale", "bivouac"]);
}

#[test]
fn samples_survive_and_are_accepted() {
    for sample in samples::<Workspace>("otterscale") {
        survives(&sample);
        assert!(sample.object.validate_cel().is_ok(), "{}", sample.file);
    }
}

#[test]
fn a_plain_workspace_is_accepted() {
    assert_eq!(refusal(|_| ()), "");
    assert_eq!(refusal(|spec| spec.namespace = None), "");
}

#[test]
fn a_workspace_has_an_admin() {
    let said = refusal(|spec| spec.members = vec![member(Role::Edit, "ada"), member(Role::View, "bob")]);
    assert!(said.contains("at least one workspace member must have role 'admin'"), "{said}");
}

#[test]
fn reserved_namespaces_are_refused() {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease", "otterscale-system"] {
        let said = refusal(|spec| spec.namespace = Some(name.into()));
        assert!(said.contains("namespace is reserved"), "{name}: {said}");
    }
}

#[test]
fn namespace_and_project_stay_as_they_are() {
    let old = workspace(|spec| spec.rancher_project_id = Some("c-1:p-1".into()));
    assert!(old.validate_cel_update(&old).is_ok());

    let moved = workspace(|spec| spec.namespace = Some("other".into()));
    assert!(moved.validate_cel_update(&old).unwrap_err().to_string().contains("namespace is immutable"));

    let moved = workspace(|spec| spec.rancher_project_id = Some("c-1:p-2".into()));
    assert!(moved.validate_cel_update(&old).unwrap_err().to_string().contains("rancherProjectID is immutable"));
}

#[test]
fn allowed_namespaces_need_isolation() {
    let isolation = |enabled| NetworkIsolation { enabled, allowed_namespaces: vec!["ci".into()], egress: None };
    let said = refusal(|spec| spec.network_isolation = Some(isolation(false)));
    assert!(said.contains("allowedNamespaces can only be set when network isolation is enabled"), "{said}");
    assert_eq!(refusal(|spec| spec.network_isolation = Some(isolation(true))), "");
}

#[test]
fn egress_lists_need_egress_and_hold_networks() {
    let with = |enabled, cidr: &str| {
        let egress = Egress { enabled, allowed_cidrs: vec![cidr.into()], ..Egress::default() };
        refusal(|spec| spec.network_isolation = Some(NetworkIsolation { egress: Some(egress), ..Default::default() }))
    };
    assert_eq!(with(true, "10.20.0.0/16"), "");
    assert_eq!(with(true, "fd00::/8"), "");
    assert!(with(false, "10.20.0.0/16").contains("when egress.enabled is true"));
    assert!(with(true, "10.20.0.0").contains("must be a network"));
}

#[test]
fn the_kind_of_a_member_fits_its_subject() {
    let with = |kind, subject: &str, service_account| {
        let member = Member { kind, service_account, ..member(Role::View, subject) };
        refusal(|spec| spec.members.push(member))
    };
    assert_eq!(with(Some(MemberKind::Group), "oidc:staff", None), "");
    assert_eq!(with(None, "system:serviceaccount:ci:bot", Some(true)), "");
    assert_eq!(with(Some(MemberKind::ServiceAccount), "system:serviceaccount:ci:bot", Some(true)), "");
    assert!(with(Some(MemberKind::ServiceAccount), "bot", None).contains("system:serviceaccount:<namespace>:<name>"));
    assert!(with(Some(MemberKind::User), "ada", Some(true)).contains("serviceAccount can only be true"));
}

#[test]
fn dns_is_open_unless_closed() {
    let egress: Egress = serde_json::from_value(json!({"enabled": true})).unwrap();
    assert!(egress.allow_dns);
    assert_eq!(schema(CRD, "spec.networkIsolation.egress.allowDNS")["default"], true);
}

#[test]
fn embedded_types_are_checked_but_not_explained() {
    let quota = schema(CRD, "spec.resourceQuota");
    assert_eq!(quota["description"], "How much the namespace may use in sum.");
    assert_eq!(quota["properties"]["scopeSelector"]["x-kubernetes-map-type"], "atomic");
    let hard = &quota["properties"]["hard"];
    assert!(hard.get("description").is_none());
    assert!(hard["additionalProperties"]["pattern"].is_string());
}
