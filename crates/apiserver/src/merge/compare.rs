// SPDX-License-Identifier: Apache-2.0
//! The difference of two objects, as sets of fields.

use serde_json::Value;

use super::{
    element::{PathElement, same},
    fields::Set,
    typed::{self, Kind},
};
use crate::schema::{List, Schema};

/// What became of the fields between two states of an object.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
pub struct Comparison<'a> {
    pub added: Set<'a>,
    pub modified: Set<'a>,
    pub removed: Set<'a>,
}

/// What became of one field itself, without what is below it.
#[derive(Default, Clone, Copy)]
struct Marks {
    added: bool,
    modified: bool,
    removed: bool,
}

pub fn compare<'a>(old: &'a Value, new: &'a Value, schema: Schema<'a>) -> Comparison<'a> {
    let mut comparison = Comparison::default();
    // Most applies change nothing.
    if !same(old, new) {
        comparison.walk(Some(old), Some(new), schema);
    }
    comparison
}

// === impl Comparison ===

impl<'a> Comparison<'a> {
    /// Leaves out what is in `set` or below it.
    pub fn without_below(self, set: &Set<'_>) -> Self {
        Self {
            added: self.added.without_below(set),
            modified: self.modified.without_below(set),
            removed: self.removed.without_below(set),
        }
    }

    /// What the writer touched: the new and the changed fields.
    pub fn touched(self) -> Set<'a> {
        let mut set = self.modified;
        set.union(self.added);
        set
    }

    fn walk(&mut self, old: Option<&'a Value>, new: Option<&'a Value>, schema: Schema<'a>) -> Marks {
        let kind = |value: &Value| typed::kind(schema, value);
        match (old.map(kind), new.map(kind)) {
            (None, None) => Marks::default(),
            (Some(kind), None) | (None, Some(kind)) => self.visit(kind, old, new, schema),
            (Some(a), Some(b)) if a == b => self.visit(a, old, new, schema),
            // An untyped value that changed its kind is seen both ways, the old way first.
            (Some(a), Some(b)) => {
                let first = self.visit(a, old, new, schema);
                first.and(self.visit(b, old, new, schema))
            }
        }
    }

    fn visit(&mut self, kind: Kind, old: Option<&'a Value>, new: Option<&'a Value>, schema: Schema<'a>) -> Marks {
        match kind {
            Kind::Scalar => leaf(old, new),
            Kind::List => {
                let items = |value: Option<&'a Value>| value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let (before, after) = (items(old), items(new));
                match typed::associative(schema) {
                    Some((list, items)) if !(before.is_empty() && after.is_empty()) => {
                        self.items(list, items, before, after);
                        branch(old, new)
                    }
                    _ => leaf(old, new),
                }
            }
            Kind::Map => {
                let before = old.and_then(Value::as_object).filter(|fields| !fields.is_empty());
                let after = new.and_then(Value::as_object).filter(|fields| !fields.is_empty());
                if typed::is_atomic(schema) || (before.is_none() && after.is_none()) {
                    return leaf(old, new);
                }
                self.map_fields(before.into_iter().flatten(), after.into_iter().flatten(), schema);
                branch(old, new)
            }
        }
    }

    fn map_fields(
        &mut self,
        before: impl Iterator<Item = (&'a String, &'a Value)>,
        after: impl Iterator<Item = (&'a String, &'a Value)>,
        schema: Schema<'a>,
    ) {
        let (mut before, mut after) = (before.peekable(), after.peekable());
        loop {
            let key = match (before.peek(), after.peek()) {
                (Some((a, _)), Some((b, _))) => *a.min(b),
                (Some((key, _)), None) | (None, Some((key, _))) => *key,
                (None, None) => return,
            };
            let old = before.next_if(|(other, _)| *other == key).map(|(_, value)| value);
            let new = after.next_if(|(other, _)| *other == key).map(|(_, value)| value);
            self.below(PathElement::field(key), |below| below.walk(old, new, typed::child(schema, key).0));
        }
    }

    fn items(&mut self, list: &'a List, items: Schema<'a>, before: &'a [Value], after: &'a [Value]) {
        let (before, after) = (typed::keyed(list, items, before), typed::keyed(list, items, after));
        let mut before = before.chunk_by(|a, b| a.0 == b.0).peekable();
        let mut after = after.chunk_by(|a, b| a.0 == b.0).peekable();
        loop {
            let first = |group: &&[(PathElement<'a>, &'a Value)]| group.first().map(|(at, _)| at.clone());
            let at = match (before.peek().and_then(first), after.peek().and_then(first)) {
                (Some(a), Some(b)) => a.min(b),
                (Some(at), None) | (None, Some(at)) => at,
                (None, None) => return,
            };
            let old = before.next_if(|group| first(group).as_ref() == Some(&at)).unwrap_or_default();
            let new = after.next_if(|group| first(group).as_ref() == Some(&at)).unwrap_or_default();
            self.below(at, |below| below.group(old, new, items));
        }
    }

    /// Compares the items that one element finds. Several of them are one thing that nobody owns in parts.
    fn group(
        &mut self,
        old: &[(PathElement<'a>, &'a Value)],
        new: &[(PathElement<'a>, &'a Value)],
        items: Schema<'a>,
    ) -> Marks {
        let value = |group: &[(PathElement<'a>, &'a Value)]| group.first().map(|(_, value)| *value);
        match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => self.walk(value(old), value(new), items),
            (0 | 1, _) => Marks { added: true, ..self.walk(value(old), None, items) },
            (_, 0 | 1) => Marks { removed: true, ..self.walk(None, value(new), items) },
            (before, after) => {
                let equal = before == after && old.iter().zip(new).all(|(a, b)| same(a.1, b.1));
                Marks { modified: !equal, ..Marks::default() }
            }
        }
    }

    /// Fills what is below an element, then notes the element itself.
    fn below(&mut self, at: PathElement<'a>, fill: impl FnOnce(&mut Comparison<'a>) -> Marks) {
        let mut below = Comparison::default();
        let marks = fill(&mut below);
        let sets = [
            (&mut self.added, marks.added, below.added),
            (&mut self.modified, marks.modified, below.modified),
            (&mut self.removed, marks.removed, below.removed),
        ];
        for (set, member, below) in sets {
            if member || !below.is_empty() {
                set.push(at.clone(), member, below);
            }
        }
    }
}

impl Marks {
    fn and(self, other: Self) -> Self {
        Self {
            added: self.added || other.added,
            modified: self.modified || other.modified,
            removed: self.removed || other.removed,
        }
    }
}

/// A value that is owned as a whole.
fn leaf(old: Option<&Value>, new: Option<&Value>) -> Marks {
    let modified = old.zip(new).is_some_and(|(old, new)| !same(old, new));
    Marks { modified, ..branch(old, new) }
}

/// A value that is owned in parts: only its coming and going counts.
fn branch(old: Option<&Value>, new: Option<&Value>) -> Marks {
    Marks { added: old.is_none(), removed: new.is_none(), modified: false }
}
