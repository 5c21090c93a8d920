// SPDX-License-Identifier: Apache-2.0
//! A Workspace, read once into a form that builders can trust.

use std::collections::BTreeMap;

use bivouac_api::tenant::{Member, MemberKind, PodSecurityLevel, Role, Workspace};
use bivouac_core::{ids, names};
use k8s_openapi::{
    api::{
        core::v1::{LimitRangeSpec, ResourceQuotaSpec},
        rbac::v1::Subject,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;

/// The label by which people find their Workspaces: `user.otterscale.io/<subject>`.
pub const MEMBER_LABEL_PREFIX: &str = "user.otterscale.io/";
/// Marks the part after the prefix as a hash, for subjects that are no label key.
pub const HASH_MARK: &str = "hash-";
/// Set to `"true"` on a Workspace: neither it nor its namespace can be deleted.
pub const PROTECTION_ANNOTATION: &str = "bivouac.dev/deletion-protection";

const RBAC: &str = "rbac.authorization.k8s.io";
/// The length of a namespace name that we choose ourselves.
const DERIVED_LENGTH: usize = 6;

/// Values that an installation may choose. The defaults are the Go operator's, so that its children stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub managed_by: String,
    pub part_of: String,
    /// The value of the version label.
    pub version: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            managed_by: "otterscale-operator".to_owned(),
            part_of: "otterscale".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// What one Workspace asks for.
#[derive(Debug)]
pub struct Tenant<'a> {
    pub name: String,
    pub uid: String,
    /// The namespace it asks for, or the one derived for it.
    pub namespace: String,
    /// Subjects by role; roles without members are absent.
    pub members: BTreeMap<Role, Vec<Subject>>,
    pub quota: Option<&'a ResourceQuotaSpec>,
    pub limits: Option<&'a LimitRangeSpec>,
    pub isolation: Option<Isolation<'a>>,
    pub namespace_labels: BTreeMap<String, String>,
    pub namespace_annotations: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
}

/// Who may talk to whom.
#[derive(Debug, PartialEq, Eq)]
pub struct Isolation<'a> {
    pub from_namespaces: &'a [String],
    /// Absent: everything may be reached from inside.
    pub egress: Option<Egress<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Egress<'a> {
    pub namespaces: &'a [String],
    pub cidrs: &'a [String],
    pub dns: bool,
}

impl<'a> Tenant<'a> {
    pub fn of(workspace: &'a Workspace, settings: &Settings) -> Self {
        let spec = &workspace.spec;
        let uid = workspace.uid().unwrap_or_default();
        let name = workspace.name_any();
        Self {
            namespace: namespace_of(workspace),
            members: subjects_by_role(&spec.members),
            quota: spec.resource_quota.as_ref(),
            limits: spec.limit_range.as_ref(),
            isolation: isolation(workspace),
            namespace_labels: namespace_labels(workspace),
            namespace_annotations: namespace_annotations(workspace),
            labels: common_labels(&name, settings),
            name,
            uid,
        }
    }

    /// Name, place and labels of a child in the tenant's namespace.
    pub fn meta(&self, name: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(self.namespace.clone()),
            labels: Some(self.labels.clone()),
            ..ObjectMeta::default()
        }
    }
}

/// The namespace a Workspace wants. Without a wish it gets a name of its own that never changes.
pub fn namespace_of(workspace: &Workspace) -> String {
    match workspace.spec.namespace.as_deref() {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => ids::from_uid(&workspace.uid().unwrap_or_default(), DERIVED_LENGTH),
    }
}

/// The labels that mirror the members. A subject that is no label key gets a hashed one.
pub fn member_labels(workspace: &Workspace) -> BTreeMap<String, String> {
    let key = |member: &Member| match names::label_key_suffix(&member.subject) {
        Some(subject) => format!("{MEMBER_LABEL_PREFIX}{subject}"),
        None => format!("{MEMBER_LABEL_PREFIX}{HASH_MARK}{}", names::hash(&[&member.subject], 20)),
    };
    workspace.spec.members.iter().map(|member| (key(member), "true".to_owned())).collect()
}

/// Names may be longer than a label value, and may hold what no label holds.
fn instance_label(name: &str) -> String {
    if names::is_label_value(name) { name.to_owned() } else { names::hashed(name, &[name], 63) }
}

fn common_labels(instance: &str, settings: &Settings) -> BTreeMap<String, String> {
    [
        ("instance", instance_label(instance)),
        ("component", "workspace".to_owned()),
        ("part-of", settings.part_of.clone()),
        ("managed-by", settings.managed_by.clone()),
        ("version", settings.version.clone()),
    ]
    .into_iter()
    .map(|(key, value)| (format!("app.kubernetes.io/{key}"), value))
    .collect()
}

fn subjects_by_role(members: &[Member]) -> BTreeMap<Role, Vec<Subject>> {
    let mut by_role: BTreeMap<Role, Vec<Subject>> = BTreeMap::new();
    for member in members {
        let subjects = by_role.entry(member.role).or_default();
        let subject = subject(member);
        // The list is atomic, so the same person may stand in it twice.
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    by_role
}

fn subject(member: &Member) -> Subject {
    let of_rbac = |kind: &str| Subject {
        kind: kind.to_owned(),
        api_group: Some(RBAC.to_owned()),
        name: member.subject.clone(),
        namespace: None,
    };
    match member.kind {
        Some(MemberKind::Group) => of_rbac("Group"),
        Some(MemberKind::ServiceAccount) => {
            let account = member.subject.strip_prefix("system:serviceaccount:").unwrap_or(&member.subject);
            match account.split_once(':') {
                Some((namespace, name)) => Subject {
                    kind: "ServiceAccount".to_owned(),
                    api_group: None,
                    name: name.to_owned(),
                    namespace: Some(namespace.to_owned()),
                },
                // Without a namespace there is no such account; the name as a user grants nothing by accident.
                None => of_rbac("User"),
            }
        }
        // `system:serviceaccount:ns:name` as a user name means that very account.
        Some(MemberKind::User) | None => of_rbac("User"),
    }
}

fn isolation(workspace: &Workspace) -> Option<Isolation<'_>> {
    let wish = workspace.spec.network_isolation.as_ref().filter(|wish| wish.enabled)?;
    let egress = wish.egress.as_ref().filter(|egress| egress.enabled).map(|egress| Egress {
        namespaces: &egress.allowed_namespaces,
        cidrs: &egress.allowed_cidrs,
        dns: egress.allow_dns,
    });
    Some(Isolation { from_namespaces: &wish.allowed_namespaces, egress })
}

fn namespace_labels(workspace: &Workspace) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    if let Some(security) = &workspace.spec.pod_security {
        for (mode, level) in [("enforce", security.enforce), ("warn", security.warn), ("audit", security.audit)] {
            if let Some(level) = level {
                labels.insert(format!("pod-security.kubernetes.io/{mode}"), level_name(level).to_owned());
            }
        }
    }
    if workspace.spec.license_injection == Some(true) {
        labels.insert("license.phison.com/inject".to_owned(), "true".to_owned());
    }
    labels
}

fn level_name(level: PodSecurityLevel) -> &'static str {
    match level {
        PodSecurityLevel::Privileged => "privileged",
        PodSecurityLevel::Baseline => "baseline",
        PodSecurityLevel::Restricted => "restricted",
    }
}

fn namespace_annotations(workspace: &Workspace) -> BTreeMap<String, String> {
    let project = workspace.spec.rancher_project_id.as_ref().filter(|id| !id.is_empty());
    let project = project.map(|id| ("field.cattle.io/projectId".to_owned(), id.clone()));
    let protection = workspace.annotations().get(PROTECTION_ANNOTATION);
    project.into_iter().chain(protection.map(|value| (PROTECTION_ANNOTATION.to_owned(), value.clone()))).collect()
}
