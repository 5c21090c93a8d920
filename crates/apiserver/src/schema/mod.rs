// SPDX-License-Identifier: Apache-2.0
//! What the server knows of the shape of objects: one model for built-in kinds and for custom resources.
//!
//! A [`Schema`] is a place in a set of [`Types`]. Types refer to each other by index, because some built-in types contain
//! themselves. Server-side apply, strategic merge, pruning, defaulting, validation and OpenAPI all walk this model.

pub mod default;
pub mod prune;
pub mod structural;
pub mod validate;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

/// Types that refer to each other.
#[derive(Debug, Default)]
pub struct Types(Vec<Type>);

/// The index of a type among its [`Types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// One type of the wire.
#[derive(Debug, Clone, Default)]
pub struct Type {
    /// The name of the definition, for OpenAPI and messages; inline types have none.
    pub name: Option<Box<str>>,
    pub description: Option<Box<str>>,
    pub shape: Shape,
    /// `null` is a value of its own. Without it a `null` counts as absent.
    pub nullable: bool,
    pub default: Option<Value>,
}

/// How values of a type are built.
#[derive(Debug, Clone, Default)]
pub enum Shape {
    /// Any JSON value. Nothing below it is known.
    #[default]
    Any,
    Boolean,
    Integer {
        format: Format,
    },
    Number {
        format: Format,
    },
    String {
        format: Format,
    },
    IntOrString,
    List(List),
    /// An object whose keys are free and whose values have one type.
    Map {
        values: TypeId,
        atomic: bool,
    },
    /// An object with named fields.
    Struct(Struct),
}

/// The `format` of a scalar, as OpenAPI writes it (`int32`, `date-time`, `byte`).
pub type Format = Option<Box<str>>;

#[derive(Debug, Clone)]
pub struct List {
    pub items: TypeId,
    pub kind: ListKind,
}

/// `x-kubernetes-list-type`: who may own what in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListKind {
    /// Owned and replaced as a whole.
    Atomic,
    /// Each value is owned by itself; no value comes twice.
    Set,
    /// Each item is owned by itself and found by these keys.
    Map { keys: Vec<Box<str>> },
}

#[derive(Debug, Clone, Default)]
pub struct Struct {
    pub fields: BTreeMap<Box<str>, Field>,
    /// Fields without a name here are kept, not pruned: `x-kubernetes-preserve-unknown-fields`.
    pub open: bool,
    /// Owned and replaced as a whole: `x-kubernetes-map-type: atomic`.
    pub atomic: bool,
    /// A whole Kubernetes object inside another: `x-kubernetes-embedded-resource`.
    pub embedded: bool,
}

#[derive(Debug, Clone)]
pub struct Field {
    pub of: TypeId,
    pub required: bool,
    /// How strategic merge patch treats the field; `None` for custom resources and for most fields.
    pub patch: Option<Box<PatchStrategy>>,
}

/// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` of a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists are merged item by item, not replaced.
    pub merge: bool,
    /// Keys that the patch does not name are dropped: `retainKeys`.
    pub retain_keys: bool,
    /// The key that finds an item; without it the items are scalars.
    pub merge_key: Option<Box<str>>,
}

/// A type and the types around it. Cheap to copy; all walks use it.
#[derive(Debug, Clone, Copy)]
pub struct Schema<'a> {
    types: &'a Types,
    id: TypeId,
}

/// An owned schema: the root type of a kind in one version.
#[derive(Debug, Clone)]
pub struct Root {
    types: Arc<Types>,
    id: TypeId,
}

// === impl Types ===

/// What an index that points nowhere means. Such an index cannot be made by [`Types::push`]; a walk that meets one sees
/// a type that allows everything.
static ANY: Type = Type { name: None, description: None, shape: Shape::Any, nullable: false, default: None };

impl Types {
    /// Adds a type and says where it is.
    pub fn push(&mut self, ty: Type) -> TypeId {
        self.0.push(ty);
        TypeId(u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX))
    }

    pub fn get(&self, id: TypeId) -> &Type {
        self.0.get(id.0 as usize).unwrap_or(&ANY)
    }

    pub fn get_mut(&mut self, id: TypeId) -> Option<&mut Type> {
        self.0.get_mut(id.0 as usize)
    }

    pub fn at(&self, id: TypeId) -> Schema<'_> {
        Schema { types: self, id }
    }

    pub fn iter(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        (0..).map(TypeId).zip(&self.0)
    }
}

// === impl Root ===

impl Root {
    pub fn new(types: Arc<Types>, id: TypeId) -> Self {
        Self { types, id }
    }

    pub fn schema(&self) -> Schema<'_> {
        self.types.at(self.id)
    }
}

// === impl Schema ===

impl<'a> Schema<'a> {
    pub fn id(self) -> TypeId {
        self.id
    }

    pub fn types(self) -> &'a Types {
        self.types
    }

    pub fn ty(self) -> &'a Type {
        self.types.get(self.id)
    }

    pub fn shape(self) -> &'a Shape {
        &self.ty().shape
    }

    pub fn at(self, id: TypeId) -> Schema<'a> {
        self.types.at(id)
    }

    /// The named field of a struct.
    pub fn field(self, name: &str) -> Option<(&'a Field, Schema<'a>)> {
        match self.shape() {
            Shape::Struct(of) => of.fields.get(name).map(|field| (field, self.at(field.of))),
            _ => None,
        }
    }

    /// The type of the value under `key`: of a struct's field or of a map's values.
    pub fn value(self, key: &str) -> Option<Schema<'a>> {
        match self.shape() {
            Shape::Map { values, .. } => Some(self.at(*values)),
            _ => self.field(key).map(|(_, schema)| schema),
        }
    }

    /// The type of a list's items.
    pub fn items(self) -> Option<Schema<'a>> {
        match self.shape() {
            Shape::List(list) => Some(self.at(list.items)),
            _ => None,
        }
    }
}
