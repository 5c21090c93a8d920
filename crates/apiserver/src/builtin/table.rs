// SPDX-License-Identifier: Apache-2.0
//! How the table is written, and how it becomes types.
//!
//! A type is a word or an object. Words: `any`, `bool`, `int`, `num`, `str` and `int-or-string`, with `:format` and
//! `=default` after them where there is one; `@name` is the type of that name. A default that is the zero value (`{}` for
//! structs) means that the server always writes the field: it is no pointer, and Go does not leave it out.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Builtins, GroupVersionKind, Place, Resource, Rules, defaults::is_zero};
use crate::schema::{Field, Format, List, ListKind, PatchStrategy, Shape, Struct, Type, TypeId, Types};

#[derive(Debug, Deserialize)]
pub(super) struct Table {
    types: BTreeMap<Box<str>, Node>,
    resources: Vec<Resource>,
    #[serde(default)]
    places: Vec<Place>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Node {
    Word(Box<str>),
    Full(Box<Full>),
}

/// One of `of`, `list`, `set`, `map` and `fields` says what it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Full {
    /// A type with something changed.
    of: Option<Node>,
    list: Option<Node>,
    /// Of a list whose items are found by them.
    keys: Vec<Box<str>>,
    set: Option<Node>,
    map: Option<Node>,
    fields: Option<BTreeMap<Box<str>, Node>>,
    required: Vec<Box<str>>,
    atomic: Option<bool>,
    #[serde(rename = "enum")]
    values: Vec<Box<str>>,
    /// The strategy of a field, with the merge key after a colon: `merge:name`.
    patch: Option<Box<str>>,
    /// The group, version and kind of a definition.
    gvk: Option<Box<str>>,
    fill: Map<String, Value>,
    zero: Vec<Box<str>>,
}

/// What is known while types are made.
#[derive(Default)]
struct Maker {
    types: Types,
    names: HashMap<Box<str>, TypeId>,
    /// Scalars are many and alike.
    words: HashMap<Box<str>, TypeId>,
    enums: HashMap<TypeId, Vec<Box<str>>>,
    kinds: HashMap<GroupVersionKind, TypeId>,
    rules: HashMap<TypeId, Rules>,
    /// The second type is the first with another `x-kubernetes-map-type`. Made last, when all types are there.
    copies: Vec<(TypeId, TypeId, bool)>,
}

// === impl Table ===

impl Table {
    pub(super) fn load(self) -> Builtins {
        let mut maker = Maker::default();
        // All names come first, because types refer to each other in circles.
        for name in self.types.keys() {
            let id = maker.types.push(Type { name: Some(name.clone()), ..Type::default() });
            maker.names.insert(name.clone(), id);
        }
        for (name, node) in self.types {
            maker.define(&name, node);
        }
        maker.copy();
        let mut resources = self.resources;
        for resource in &mut resources {
            let kind = GroupVersionKind::new(&resource.group, &resource.version, &resource.kind);
            resource.root = maker.kinds.get(&kind).copied().unwrap_or(resource.root);
        }
        let Maker { types, names, enums, kinds, rules, .. } = maker;
        Builtins { types: Arc::new(types), resources, enums, kinds, names, rules, places: self.places }
    }
}

// === impl Maker ===

impl Maker {
    fn define(&mut self, name: &str, node: Node) {
        let Some(id) = self.names.get(name).copied() else { return };
        if let Node::Full(full) = &node {
            if let Some(kind) = full.gvk.as_deref().and_then(parse_kind) {
                self.kinds.insert(kind, id);
            }
            self.rules.insert(id, full.rules());
        }
        let made = self.make(node);
        if let Some(ty) = self.types.get_mut(id) {
            *ty = Type { name: Some(name.into()), ..made };
        }
    }

    /// The type of a node that is no reference.
    fn make(&mut self, node: Node) -> Type {
        let full = match node {
            Node::Word(word) => return scalar(&word),
            Node::Full(full) => *full,
        };
        if let Some(Node::Word(word)) = full.of {
            return scalar(&word);
        }
        let shape = if let Some(items) = full.list {
            let kind = if full.keys.is_empty() { ListKind::Atomic } else { ListKind::Map { keys: full.keys } };
            Shape::List(List { items: self.place(items), kind })
        } else if let Some(items) = full.set {
            Shape::List(List { items: self.place(items), kind: ListKind::Set })
        } else if let Some(values) = full.map {
            Shape::Map { values: self.place(values), atomic: full.atomic.unwrap_or_default() }
        } else if let Some(fields) = full.fields {
            let field = |(name, node): (Box<str>, Node)| {
                let patch = node.patch().map(Box::new);
                let required = full.required.contains(&name);
                (name, Field { of: self.place(node), required, patch })
            };
            let fields = fields.into_iter().map(field).collect();
            Shape::Struct(Struct { fields, atomic: full.atomic.unwrap_or_default(), ..Struct::default() })
        } else {
            Shape::Any
        };
        Type { shape, ..Type::default() }
    }

    fn copy(&mut self) {
        for (of, copy, atomic) in std::mem::take(&mut self.copies) {
            let mut ty = self.types.get(of).clone();
            if let Shape::Struct(Struct { atomic: it, .. }) | Shape::Map { atomic: it, .. } = &mut ty.shape {
                *it = atomic;
            }
            if let Some(rules) = self.rules.get(&of).cloned() {
                self.rules.insert(copy, rules);
            }
            if let Some(place) = self.types.get_mut(copy) {
                *place = ty;
            }
        }
    }

    /// Where the type of a node is; it is made when there is none yet.
    fn place(&mut self, node: Node) -> TypeId {
        match node {
            Node::Word(word) => match word.strip_prefix('@') {
                Some(name) => self.names.get(name.trim_end_matches("={}")).copied().unwrap_or(TypeId(u32::MAX)),
                None => *self.words.entry(word).or_insert_with_key(|word| self.types.push(scalar(word))),
            },
            // Only the field knows of the patch strategy: the type is the same without it.
            Node::Full(full) if full.is_plain() => self.place(full.of.unwrap_or_default()),
            Node::Full(full) if full.of.is_some() && full.atomic.is_some() => {
                let copy = self.types.push(Type::default());
                let of = self.place(full.of.unwrap_or_default());
                self.copies.push((of, copy, full.atomic.unwrap_or_default()));
                copy
            }
            Node::Full(full) => {
                let values = full.values.clone();
                let made = self.make(Node::Full(full));
                let id = self.types.push(made);
                if !values.is_empty() {
                    self.enums.insert(id, values);
                }
                id
            }
        }
    }
}

// === impl Full ===

impl Full {
    fn rules(&self) -> Rules {
        let learned = self.fill.iter().map(|(name, value)| (name.as_str().into(), value.clone()));
        let always = self.fields.iter().flatten().filter_map(|(name, node)| Some((name.clone(), node.always()?)));
        let unknown = |name: &str| !self.fill.contains_key(name) && self.zero.iter().all(|zero| **zero != *name);
        let fill = learned.chain(always.filter(|(name, _)| unknown(name))).collect();
        Rules { fill, zero: self.zero.clone() }
    }

    fn is_plain(&self) -> bool {
        self.of.is_some() && self.values.is_empty() && self.atomic.is_none()
    }
}

// === impl Node ===

impl Default for Node {
    fn default() -> Self {
        Self::Word("any".into())
    }
}

impl Node {
    /// The zero value, when it is always written.
    fn always(&self) -> Option<Value> {
        match self {
            Self::Word(word) if word.starts_with('@') => word.ends_with("={}").then(|| Value::Object(Map::new())),
            Self::Word(word) => scalar(word).default.filter(is_zero),
            Self::Full(full) => full.of.as_ref()?.always(),
        }
    }

    fn patch(&self) -> Option<PatchStrategy> {
        let Self::Full(full) = self else { return None };
        let text = full.patch.as_deref()?;
        let (strategies, key) = text.split_once(':').map_or((text, None), |(text, key)| (text, Some(key)));
        let has = |name| strategies.split(',').any(|one| one == name);
        Some(PatchStrategy { merge: has("merge"), retain_keys: has("retainKeys"), merge_key: key.map(Into::into) })
    }
}

fn scalar(word: &str) -> Type {
    let (head, default) = word.split_once('=').map_or((word, None), |(head, text)| (head, Some(text)));
    let (name, format) = head.split_once(':').map_or((head, None), |(name, text)| (name, Some(text)));
    let format: Format = format.map(Into::into);
    let shape = match name {
        "bool" => Shape::Boolean,
        "int" => Shape::Integer { format },
        "num" => Shape::Number { format },
        "str" => Shape::String { format },
        "int-or-string" => Shape::IntOrString,
        _ => Shape::Any,
    };
    let default = default.map(|text| match shape {
        Shape::Boolean | Shape::Integer { .. } | Shape::Number { .. } => serde_json::from_str(text).unwrap_or_default(),
        _ => Value::from(text),
    });
    Type { shape, default, ..Type::default() }
}

/// `apps/v1/Deployment`; the core group has no name: `/v1/Pod`.
fn parse_kind(text: &str) -> Option<GroupVersionKind> {
    let mut parts = text.split('/');
    Some(GroupVersionKind::new(parts.next()?, parts.next()?, parts.next()?))
}
