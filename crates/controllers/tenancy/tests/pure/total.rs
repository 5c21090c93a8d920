// SPDX-License-Identifier: Apache-2.0
//! What holds for every Workspace in every world.

use std::collections::BTreeSet;

use bivouac_api::tenant::{
    Egress, Member, MemberKind, NetworkIsolation, PodSecurity, PodSecurityLevel, Role, Workspace, WorkspaceSpec,
};
use bivouac_core::names;
use bivouac_runtime::{
    capabilities::Presence,
    reconcile::{Category, Only},
};
use bivouac_tenancy::{
    endpoints::Endpoints,
    observe::{Owner, Present, Refusal, Rival, SeenNamespace, World},
    plan::plan,
    tenant::namespace_of,
};
use k8s_openapi::{
    api::core::v1::{LimitRangeSpec, ResourceQuotaSpec},
    apimachinery::pkg::apis::meta::v1::Time,
};
use proptest::{collection::vec, option, prelude::*, sample::select};

use crate::fixtures::{at, settings};

const UIDS: [&str; 3] = ["uid-a", "uid-b", "uid-c"];

prop_compose! {
    fn members()(members in vec((select(vec![Role::Admin, Role::Edit, Role::View]), subject(), option::of(kind())), 1..6))
        -> Vec<Member> {
        let member = |(role, subject, kind)| Member { role, subject, kind, ..Member::default() };
        members.into_iter().map(member).collect()
    }
}

fn subject() -> impl Strategy<Value = String> {
    let usual =
        ["ada", "bob@example.com", "system:serviceaccount:ci:bot", "system:serviceaccount:", ":"].map(String::from);
    prop_oneof![select(usual.to_vec()), any::<String>()]
}

fn kind() -> impl Strategy<Value = MemberKind> {
    select(vec![MemberKind::User, MemberKind::Group, MemberKind::ServiceAccount])
}

prop_compose! {
    fn isolation()(enabled: bool, egress: bool, dns: bool, from in vec("[a-z]{1,8}", 0..3), cidrs in vec("[0-9./]{0,9}", 0..2))
        -> NetworkIsolation {
        let egress = Egress { enabled: egress, allowed_namespaces: from.clone(), allowed_cidrs: cidrs, allow_dns: dns };
        NetworkIsolation { enabled, allowed_namespaces: from, egress: Some(egress) }
    }
}

prop_compose! {
    fn workspaces()(
        name in "[a-z0-9][-.a-z0-9]{0,251}[a-z0-9]",
        uid in select(UIDS.to_vec()),
        created in option::of(0..3i64),
        namespace in option::of("|[a-z]{1,63}"),
        members in members(),
        (quota, limits, license) in any::<(bool, bool, Option<bool>)>(),
        network_isolation in option::of(isolation()),
        enforce in option::of(select(vec![PodSecurityLevel::Privileged, PodSecurityLevel::Restricted])),
    ) -> Workspace {
        let spec = WorkspaceSpec {
            namespace,
            members,
            resource_quota: quota.then(ResourceQuotaSpec::default),
            limit_range: limits.then(LimitRangeSpec::default),
            network_isolation,
            pod_security: Some(PodSecurity { enforce, ..PodSecurity::default() }),
            license_injection: license,
            rancher_project_id: None,
        };
        let mut workspace = Workspace::new(&name, spec);
        workspace.metadata.uid = Some(uid.to_owned());
        workspace.metadata.creation_timestamp = created.map(|second| Time(at(second)));
        workspace
    }
}

fn presence() -> impl Strategy<Value = Presence> {
    select(vec![Presence::Served, Presence::Absent, Presence::Unknown])
}

prop_compose! {
    fn seen()(owner in option::of(select(UIDS.to_vec())), (terminating, injects_sidecars, ambient) in any::<(bool, bool, bool)>())
        -> SeenNamespace {
        let owner = owner.map(|uid| Owner { name: "somebody".into(), uid: uid.into() });
        SeenNamespace { uid: "namespace".into(), owner, terminating, injects_sidecars, ambient }
    }
}

prop_compose! {
    fn refusal()(
        kind in select(vec!["Namespace", "RoleBinding", "ResourceQuota", "Kustomization"]),
        name in select(vec!["team", "workspace-role-binding-admin", "workspace-resource-quota"]),
        category in select(vec![Category::Conflict, Category::Forbidden, Category::Transport]),
    ) -> Refusal {
        Refusal { kind: kind.into(), name: name.into(), category, text: "no".into() }
    }
}

prop_compose! {
    fn worlds()(
        namespace in option::of(seen()),
        rivals in vec((select(UIDS.to_vec()), 0..3i64), 0..3),
        present in vec((select(vec!["RoleBinding", "ResourceQuota", "NetworkPolicy"]), "workspace-[a-z-]{0,20}"), 0..4),
        (mesh, flux, gateways) in (presence(), presence(), presence()),
        service in option::of("10\\.0\\.0\\.[0-9]"),
        refusals in vec(refusal(), 0..3),
    ) -> World {
        let rival = |(uid, second): (&str, i64)| Rival { name: uid.into(), uid: uid.into(), created: at(second) };
        let present = present.into_iter().map(|(kind, name)| Present { kind, name }).collect();
        let endpoints = Endpoints { service, model: None };
        let rivals = rivals.into_iter().map(rival).collect();
        World { namespace, rivals, present, mesh, flux, gateways, endpoints, refusals }
    }
}

proptest! {
    #[test]
    fn plans_are_total_and_keep_to_their_own(workspace in workspaces(), world in worlds()) {
        let made = plan(&workspace, &world, &settings());
        prop_assert_eq!(format!("{made:?}"), format!("{:?}", plan(&workspace, &world, &settings())), "twice the same");

        let ours = world.namespace.as_ref().is_none_or(|seen| {
            seen.owner.as_ref().is_some_and(|owner| Some(&owner.uid) == workspace.metadata.uid.as_ref()) && !seen.terminating
        });
        prop_assert!(ours || (made.stages.is_empty() && !made.prune), "a namespace that is not ours is not touched");
        if [world.mesh, world.flux, world.gateways].contains(&Presence::Unknown) {
            prop_assert!(!made.prune, "nothing is removed while something is unknown");
        }

        let namespace = namespace_of(&workspace);
        prop_assert!(names::is_dns1123_label(&namespace), "{namespace}");
        let mut seen = BTreeSet::new();
        for child in made.children() {
            prop_assert!(seen.insert((child.resource.kind.clone(), child.key.clone())), "planned twice: {child:?}");
            if child.resource.kind == "Namespace" {
                prop_assert_eq!((&*child.key.namespace, &child.key.name), ("", &namespace));
                prop_assert_ne!(&child.only, &Only::Always, "a namespace is never taken over");
            } else {
                prop_assert_eq!(&child.key.namespace, &namespace);
            }
            for (key, value) in child.body["metadata"]["labels"].as_object().unwrap() {
                prop_assert!(names::is_qualified_name(key) && names::is_label_value(value.as_str().unwrap()), "{key}={value}");
            }
        }
        for key in made.labels.iter().flat_map(|own| own.labels.keys()) {
            prop_assert!(names::is_qualified_name(key), "{key}");
        }
        prop_assert_eq!(made.conditions.is_empty(), made.status.is_none(), "words come together");
        prop_assert_eq!(made.conditions.is_empty(), made.events.is_empty());
    }
}
