// SPDX-License-Identifier: Apache-2.0
//! The order of merged lists: what the patch says, then what was there.

use serde_json::Value;

/// Items that are merged, with the key that finds them. Scalars have no key; they find themselves.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    pub key: Option<&'a str>,
}

impl Order<'_> {
    fn id(self, item: &Value) -> Option<&Value> {
        match self.key {
            Some(key) => item.get(key),
            None => Some(item),
        }
    }

    /// Where the item is in a list.
    fn index(self, list: &[Value], item: &Value) -> Option<usize> {
        let id = self.id(item);
        list.iter().position(|other| self.id(other) == id)
    }

    /// Sorts the items that the `patch` order names by it, and lays the others between them where the `server` order had
    /// them.
    pub fn arrange(self, merged: Vec<Value>, patch: &[Value], server: &[Value]) -> Vec<Value> {
        let sorted = |items: Vec<Value>, order: &[Value]| {
            let mut items: Vec<_> = items.into_iter().map(|item| (self.index(order, &item), item)).collect();
            items.sort_by_key(|(index, _)| *index);
            items.into_iter().map(|(_, item)| item)
        };
        let (patched, kept) = merged.into_iter().partition(|item| self.index(patch, item).is_some());
        let mut patched = sorted(patched, patch).peekable();
        let mut out = Vec::new();
        for item in sorted(kept, server) {
            let place = self.index(server, &item);
            // An item goes before the first patched one that the server had after it.
            while let Some(next) = patched.next_if(|next| match (place, self.index(server, next)) {
                (Some(place), Some(next)) => place >= next,
                _ => true,
            }) {
                out.push(next);
            }
            out.push(item);
        }
        out.extend(patched);
        out
    }
}
