// SPDX-License-Identifier: Apache-2.0
//! Which resources are served, in which versions: the built-in ones and those of CustomResourceDefinitions.

mod check;
pub mod custom;
mod present;
pub mod rules;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use serde_json::Value;

use crate::{
    builtin::{self, Column, builtins},
    kinds::{self, Rules},
    merge,
    object::as_object,
    schema::{Root, TypeId},
    store::Keyspace,
};
use custom::Custom;

/// One resource in one version.
#[derive(Debug)]
pub struct Resource {
    pub group: Box<str>,
    pub version: Box<str>,
    /// `v1`, `apps/v1`.
    pub api_version: Box<str>,
    pub plural: Box<str>,
    pub singular: Box<str>,
    pub kind: Box<str>,
    pub list_kind: Box<str>,
    pub namespaced: bool,
    pub short_names: Vec<Box<str>>,
    pub categories: Vec<Box<str>>,
    pub verbs: Vec<Box<str>>,
    pub storage_version_hash: Option<Box<str>>,
    pub subresources: Vec<builtin::Subresource>,
    pub columns: Vec<Column>,
    pub keyspace: Keyspace,
    pub schema: Root,
    /// How stored bodies of this version begin.
    pub head: Vec<u8>,
    /// What an object of this kind is before anything is written to it.
    pub empty: Value,
    /// Other versions of the same objects.
    pub other_versions: Vec<(Box<str>, Root)>,
    pub backing: Backing,
}

/// Where the rules of a kind come from.
#[derive(Debug)]
pub enum Backing {
    Builtin(&'static Rules),
    Custom(Arc<Custom>),
}

impl Resource {
    pub fn serves(&self, verb: &str) -> bool {
        self.verbs.iter().any(|one| &**one == verb)
    }

    pub fn subresource(&self, name: &str) -> Option<&builtin::Subresource> {
        self.subresources.iter().find(|one| &*one.name == name)
    }

    pub fn custom(&self) -> Option<&Arc<Custom>> {
        match &self.backing {
            Backing::Custom(custom) => Some(custom),
            Backing::Builtin(_) => None,
        }
    }

    pub fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    /// The kind as server-side apply wants it.
    pub fn merge_kind(&self) -> merge::Kind<'_> {
        merge::Kind {
            api_version: &self.api_version,
            kind: &self.kind,
            schema: self.schema.schema(),
            empty: &self.empty,
            custom: self.custom().is_some(),
            versions: &self.other_versions,
        }
    }

    fn builtin(of: &builtin::Resource) -> Self {
        let rules = kinds::rules(&of.group, &of.version, &of.kind);
        let schema = builtins().root(of.root);
        let api_version = join(&of.group, &of.version);
        let empty = zero(&api_version, &of.kind, of.root);
        // The two kinds of Event are one store.
        let keyspace = match (&*of.group, &*of.plural) {
            ("events.k8s.io", "events") => Keyspace::new("", "events"),
            (group, plural) => Keyspace::new(group, plural),
        };
        Self {
            group: of.group.clone(),
            version: of.version.clone(),
            head: present::head(&api_version, &of.kind),
            api_version: api_version.into(),
            plural: of.plural.clone(),
            singular: of.singular.clone(),
            kind: of.kind.clone(),
            list_kind: of.list_kind().into(),
            namespaced: of.namespaced,
            short_names: of.short_names.clone(),
            categories: of.categories.clone(),
            verbs: of.verbs.clone(),
            storage_version_hash: of.storage_version_hash.clone(),
            subresources: of.subresources.clone(),
            columns: of.columns.clone(),
            keyspace,
            schema,
            empty,
            other_versions: Vec::new(),
            backing: Backing::Builtin(rules),
        }
    }
}

/// What Go's zero value of a kind is on the wire.
fn zero(api_version: &str, kind: &str, root: TypeId) -> Value {
    let mut empty = merge::zero(builtins(), root);
    let map = as_object(&mut empty);
    map.insert("apiVersion".into(), api_version.into());
    map.insert("kind".into(), kind.into());
    empty
}

/// `group/version`, or the version alone in the core group.
pub fn join(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// All resources at one moment. A change makes a new one.
#[derive(Debug, Default)]
pub struct Registry {
    /// In the order of discovery.
    groups: Vec<Group>,
    resources: HashMap<Box<str>, Vec<Arc<Resource>>>,
    /// What discovery tells of the core group and of all others. Every client asks for it, and it is long.
    discovery: [OnceLock<Bytes>; 2],
}

#[derive(Debug, Clone)]
pub struct Group {
    pub name: Box<str>,
    /// The preferred version first.
    pub versions: Vec<Box<str>>,
}

impl Registry {
    /// The discovery document of the core group or of the others, made once.
    pub fn kept(&self, core: bool, make: impl FnOnce() -> Bytes) -> Bytes {
        let [own, others] = &self.discovery;
        (if core { own } else { others }).get_or_init(make).clone()
    }

    pub fn builtin() -> Self {
        let mut registry = Self::default();
        for of in &builtins().resources {
            registry.add(Arc::new(Resource::builtin(of)));
        }
        registry
    }

    fn add(&mut self, resource: Arc<Resource>) {
        let group = match self.groups.iter_mut().find(|group| group.name == resource.group) {
            Some(group) => group,
            None => {
                self.groups.push(Group { name: resource.group.clone(), versions: Vec::new() });
                let Some(last) = self.groups.last_mut() else { return };
                last
            }
        };
        if !group.versions.contains(&resource.version) {
            group.versions.push(resource.version.clone());
        }
        self.resources.entry(resource.group.clone()).or_default().push(resource);
    }

    /// The same registry with these custom resources in place of all earlier ones.
    pub fn with_custom<'a>(&self, customs: impl IntoIterator<Item = &'a Arc<Resource>>) -> Self {
        let mut registry = Self::builtin_part(self);
        let mut by_group: BTreeMap<Box<str>, Vec<Arc<Resource>>> = BTreeMap::new();
        for custom in customs {
            by_group.entry(custom.group.clone()).or_default().push(custom.clone());
        }
        for (_, mut resources) in by_group {
            resources
                .sort_by(|a, b| custom::version_order(&a.version, &b.version).then_with(|| a.plural.cmp(&b.plural)));
            for resource in resources {
                registry.add(resource);
            }
        }
        registry
    }

    fn builtin_part(&self) -> Self {
        let is_builtin = |resource: &Arc<Resource>| resource.custom().is_none();
        let mut part = Self::default();
        for group in &self.groups {
            let kept: Vec<Arc<Resource>> =
                self.resources.get(&group.name).into_iter().flatten().filter(|one| is_builtin(one)).cloned().collect();
            if kept.is_empty() {
                continue;
            }
            let served = |version: &str| kept.iter().any(|one| &*one.version == version);
            let versions = group.versions.iter().filter(|version| served(version)).cloned().collect();
            part.groups.push(Group { name: group.name.clone(), versions });
            part.resources.insert(group.name.clone(), kept);
        }
        part
    }

    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| &*group.name == name)
    }

    /// The resources of one version of a group, in the order of discovery.
    pub fn version<'a>(&'a self, group: &str, version: &'a str) -> impl Iterator<Item = &'a Arc<Resource>> {
        self.resources.get(group).into_iter().flatten().filter(move |one| &*one.version == version)
    }

    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(group)?.iter().find(|one| &*one.plural == plural && &*one.version == version)
    }

    pub fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let mut all = self.resources.get(group)?.iter();
        all.find(|one| &*one.kind == kind && &*one.version == version && one.serves("get"))
    }

    /// Every resource once per version.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.iter().flat_map(|group| self.resources.get(&group.name).into_iter().flatten())
    }
}
