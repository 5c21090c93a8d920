// SPDX-License-Identifier: Apache-2.0
//! Sets of field paths: who owns what.

use std::{cmp::Ordering, iter::Peekable, vec};

use serde_json::{Map, Value};

use super::{
    element::{BadElement, PathElement},
    typed,
};
use crate::schema::Schema;

/// A set of field paths as a tree, sorted on each level. A path can be in the set while its parent is not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set<'a>(Vec<Node<'a>>);

/// A path element with what the set holds at it and below it. At least one of the two is something.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node<'a> {
    at: PathElement<'a>,
    member: bool,
    below: Set<'a>,
}

// === impl Set ===

impl<'a> Set<'a> {
    /// The set of these paths, each a list of field names.
    pub fn of_fields(paths: &[&[&'a str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(path.iter().map(|name| PathElement::field(name)));
        }
        set
    }

    /// Adds one path. The path of the whole object is in no set.
    pub fn insert(&mut self, path: impl IntoIterator<Item = PathElement<'a>>) {
        let mut path = path.into_iter().peekable();
        let mut set = self;
        while let Some(at) = path.next() {
            let place = match set.0.binary_search_by(|node| node.at.cmp(&at)) {
                Ok(place) => place,
                Err(place) => {
                    set.0.insert(place, Node { at, member: false, below: Set::default() });
                    place
                }
            };
            let Some(node) = set.0.get_mut(place) else { return };
            if path.peek().is_none() {
                node.member = true;
                return;
            }
            set = &mut node.below;
        }
    }

    /// Adds an element that is greater than all before it; walks over sorted objects use it.
    pub(super) fn push(&mut self, at: PathElement<'a>, member: bool, below: Set<'a>) {
        if member || !below.is_empty() {
            self.0.push(Node { at, member, below });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has(&self, at: &PathElement<'_>) -> bool {
        self.get(at).is_some_and(|(member, _)| member)
    }

    /// Whether the element itself is in the set, and what is below it.
    pub fn get(&self, at: &PathElement<'_>) -> Option<(bool, &Set<'a>)> {
        let place = self.0.binary_search_by(|node| node.at.cmp(at)).ok()?;
        self.0.get(place).map(|node| (node.member, &node.below))
    }

    pub fn union(&mut self, other: Set<'a>) {
        if self.is_empty() {
            *self = other;
            return;
        }
        if other.is_empty() {
            return;
        }
        let (mut left, mut right) =
            (std::mem::take(&mut self.0).into_iter().peekable(), other.0.into_iter().peekable());
        while let Some(node) = next_of_both(&mut left, &mut right) {
            self.0.push(node);
        }
    }

    /// What is in this set but not in `other`. A parent does not take its children along.
    pub fn without(mut self, other: &Set<'_>) -> Self {
        if other.is_empty() {
            return self;
        }
        self.join(other, |node, other| {
            if let Some(other) = other {
                node.member &= !other.member;
                node.below = std::mem::take(&mut node.below).without(&other.below);
            }
        });
        self
    }

    /// What is in this set and neither in `other` nor below something in `other`.
    pub fn without_below(mut self, other: &Set<'_>) -> Self {
        if other.is_empty() {
            return self;
        }
        self.join(other, |node, other| match other {
            Some(other) if other.member => {
                node.member = false;
                node.below = Set::default();
            }
            Some(other) => node.below = std::mem::take(&mut node.below).without_below(&other.below),
            None => {}
        });
        self
    }

    pub fn intersection(mut self, other: &Set<'_>) -> Self {
        self.join(other, |node, other| match other {
            Some(other) => {
                node.member &= other.member;
                node.below = std::mem::take(&mut node.below).intersection(&other.below);
            }
            None => {
                node.member = false;
                node.below = Set::default();
            }
        });
        self
    }

    /// Whether everything in this set is in `other` too.
    pub fn is_within(&self, other: &Set<'_>) -> bool {
        let mut rest = other.0.iter().peekable();
        self.0.iter().all(|node| {
            while rest.next_if(|other| other.at < node.at).is_some() {}
            let found = rest.peek().filter(|other| other.at == node.at);
            found.is_some_and(|other| (!node.member || other.member) && node.below.is_within(&other.below))
        })
    }

    /// Changes each node in view of the other set's node at the same place, then drops nodes that hold nothing.
    fn join<'b>(&mut self, other: &Set<'b>, change: impl Fn(&mut Node<'a>, Option<&Node<'b>>)) {
        let mut rest = other.0.iter().peekable();
        self.0.retain_mut(|node| {
            while rest.next_if(|other| other.at < node.at).is_some() {}
            change(node, rest.peek().copied().filter(|other| other.at == node.at));
            node.member || !node.below.is_empty()
        });
    }

    /// Adds the parents that are named fields of the schema. Objects name them only by what they contain.
    pub(super) fn with_named_parents(mut self, schema: Schema<'_>) -> Self {
        for node in self.0.iter_mut().filter(|node| !node.below.is_empty()) {
            let below = match &node.at {
                PathElement::Field(name) => {
                    let (below, named) = typed::child(schema, name);
                    node.member |= named;
                    below
                }
                PathElement::Key(_) => schema.items().unwrap_or(schema.at(typed::ANY)),
                _ => schema.at(typed::ANY),
            };
            node.below = std::mem::take(&mut node.below).with_named_parents(below);
        }
        self
    }

    /// Follows a change of the schema since the set was written: what has become atomic is owned as a whole by who owned
    /// a part of it.
    pub(super) fn follow(&mut self, schema: Schema<'_>) {
        for node in self.0.iter_mut().filter(|node| !node.below.is_empty()) {
            let below = match &node.at {
                PathElement::Field(name) => typed::child(schema, name).0,
                _ => schema.items().unwrap_or(schema.at(typed::ANY)),
            };
            if typed::is_atomic(below) {
                node.member = true;
                node.below = Set::default();
            } else {
                node.below.follow(below);
            }
        }
    }

    /// Calls `visit` with each path: on each level first the members, then what is below.
    pub fn visit<'s>(&'s self, path: &mut Vec<&'s PathElement<'a>>, visit: &mut impl FnMut(&[&'s PathElement<'a>])) {
        for node in self.0.iter().filter(|node| node.member) {
            path.push(&node.at);
            visit(path);
            path.pop();
        }
        for node in &self.0 {
            path.push(&node.at);
            node.below.visit(path, visit);
            path.pop();
        }
    }

    /// Reads `fieldsV1`.
    pub fn decode(fields: &'a Value) -> Result<Self, BadElement> {
        match fields {
            Value::Null => Ok(Self::default()),
            Value::Object(fields) => read(fields).map(|(_, set)| set),
            other => Err(BadElement::Content(format!("expect {{ or n, but found {other}"))),
        }
    }

    /// Writes `fieldsV1`.
    pub fn encode(&self) -> Value {
        Value::Object(self.write())
    }

    fn write(&self) -> Map<String, Value> {
        let nodes = self.0.iter().map(|node| {
            let mut below = node.below.write();
            if node.member && !below.is_empty() {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            (node.at.encode(), Value::Object(below))
        });
        nodes.collect()
    }
}

/// Whether the place itself is in the set, and what is below it. A place with nothing below is in the set.
fn read(fields: &Map<String, Value>) -> Result<(bool, Set<'_>), BadElement> {
    let mut set = Set(Vec::with_capacity(fields.len()));
    let mut sorted = true;
    for (key, value) in fields.iter().filter(|(key, _)| *key != ".") {
        let Some(at) = PathElement::decode(key)? else { continue };
        let (member, below) = match value {
            Value::Object(fields) => read(fields)?,
            Value::Null => (true, Set::default()),
            other => return Err(BadElement::Content(format!("expect {{ or n, but found {other}"))),
        };
        sorted &= set.0.last().is_none_or(|last| last.at < at);
        set.0.push(Node { at, member, below });
    }
    if !sorted {
        set.0.sort_by(|a, b| a.at.cmp(&b.at));
        set.0.dedup_by(|later, first| later.at == first.at);
    }
    Ok((set.is_empty() || fields.contains_key("."), set))
}

fn next_of_both<'a>(
    left: &mut Peekable<vec::IntoIter<Node<'a>>>,
    right: &mut Peekable<vec::IntoIter<Node<'a>>>,
) -> Option<Node<'a>> {
    let side = match (left.peek(), right.peek()) {
        (Some(l), Some(r)) => l.at.cmp(&r.at),
        (Some(_), None) => Ordering::Less,
        (None, _) => Ordering::Greater,
    };
    match side {
        Ordering::Less => left.next(),
        Ordering::Greater => right.next(),
        Ordering::Equal => {
            let (mut node, other) = left.next().zip(right.next())?;
            node.member |= other.member;
            node.below.union(other.below);
            Some(node)
        }
    }
}
