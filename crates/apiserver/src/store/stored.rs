// SPDX-License-Identifier: Apache-2.0
//! One version of one object, packed: a million of them must fit.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt::{self, Write};
use std::sync::Arc;

use bytes::Bytes;

/// One stored resource, such as `apps/deployments`. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keyspace(Arc<str>);

/// What a selector may ask about: labels and selectable fields. They are packed once, when the object is written, so
/// that no selector ever parses JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    text: String,
    labels_end: usize,
}

/// An object as the caller hands it in: its JSON and what selectors may ask about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    pub body: Vec<u8>,
    pub tags: Tags,
}

/// One version of one object. A clone is a pointer.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored(Arc<Packed>);

/// Two pointers and three numbers. `text` is the key, the labels and the fields in one allocation.
#[derive(PartialEq, Eq)]
struct Packed {
    revision: u64,
    key_end: usize,
    labels_end: usize,
    text: Box<str>,
    body: Box<[u8]>,
}

/// Names with values, read from their packed form.
#[derive(Clone, Copy)]
pub struct Pairs<'a>(&'a str);

/// A version that sorts by its key, and is found by it.
#[derive(Clone)]
pub(super) struct ByKey(pub Stored);

// === impl Keyspace ===

impl Keyspace {
    /// The core group is the empty string, and leaves no mark: `pods`.
    pub fn new(group: &str, resource: &str) -> Self {
        if group.is_empty() { Self(resource.into()) } else { Self(format!("{group}/{resource}").into()) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn from_name(name: &str) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Tags ===

impl Tags {
    /// `metadata.name` and `metadata.namespace` need not be among the fields: the key has them.
    pub fn new<'a>(
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        fields: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        // Room for most objects; what is kept is a copy without slack.
        let mut text = String::with_capacity(256);
        pack(&mut text, labels);
        let labels_end = text.len();
        pack(&mut text, fields);
        Self { text, labels_end }
    }
}

/// Each word with its length before it, as in `3:app3:web`: any word is allowed, and reading stays within `str`.
fn pack<'a>(text: &mut String, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) {
    for (name, value) in pairs {
        for word in [name, value] {
            // Writing to memory cannot fail.
            let _ = write!(text, "{}:", word.len());
            text.push_str(word);
        }
    }
}

// === impl Stored ===

impl Stored {
    pub(super) fn new(revision: u64, key: &str, draft: Draft) -> Self {
        let Draft { body, tags } = draft;
        let mut text = String::with_capacity(key.len() + tags.text.len());
        text.push_str(key);
        text.push_str(&tags.text);
        Self(Arc::new(Packed {
            revision,
            key_end: key.len(),
            labels_end: key.len() + tags.labels_end,
            text: text.into_boxed_str(),
            body: body.into_boxed_slice(),
        }))
    }

    /// From what [`Stored::text`] gave. None if the ends do not lie in the text, one behind the other.
    pub(super) fn from_text(revision: u64, text: &str, ends: [usize; 2], body: &[u8]) -> Option<Self> {
        let [key_end, labels_end] = ends;
        text.get(key_end..labels_end).and(text.get(labels_end..))?;
        Some(Self(Arc::new(Packed { revision, key_end, labels_end, text: text.into(), body: body.into() })))
    }

    /// The packed text, where the key ends in it, and where the labels end.
    pub(super) fn text(&self) -> (&str, [usize; 2]) {
        (&self.0.text, [self.0.key_end, self.0.labels_end])
    }

    /// The revision of the write that made this version; of the deletion, in an event that reports one.
    pub fn revision(&self) -> u64 {
        self.0.revision
    }

    /// `namespace/name`, or `name` alone if the resource has no namespaces.
    pub fn key(&self) -> &str {
        self.0.text.get(..self.0.key_end).unwrap_or_default()
    }

    /// Empty where the key has none.
    pub fn namespace(&self) -> &str {
        self.key().split_once('/').map_or("", |(namespace, _)| namespace)
    }

    pub fn body(&self) -> &[u8] {
        &self.0.body
    }

    /// The body as something a response can hold, without copying it.
    pub fn bytes(&self) -> Bytes {
        Bytes::from_owner(self.clone())
    }

    pub fn labels(&self) -> Pairs<'_> {
        Pairs(self.0.text.get(self.0.key_end..self.0.labels_end).unwrap_or_default())
    }

    pub fn fields(&self) -> Pairs<'_> {
        Pairs(self.0.text.get(self.0.labels_end..).unwrap_or_default())
    }

    /// What this version costs in memory, nearly.
    pub(super) fn weight(&self) -> usize {
        size_of::<Packed>() + self.0.text.len() + self.0.body.len()
    }
}

impl AsRef<[u8]> for Stored {
    fn as_ref(&self) -> &[u8] {
        self.body()
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} {}", self.key(), self.revision(), String::from_utf8_lossy(self.body()))
    }
}

// === impl Pairs ===

impl<'a> Pairs<'a> {
    pub fn get(self, name: &str) -> Option<&'a str> {
        self.into_iter().find_map(|(found, value)| (found == name).then_some(value))
    }

    fn word(&mut self) -> Option<&'a str> {
        let (len, rest) = self.0.split_once(':')?;
        let (word, rest) = rest.split_at_checked(len.parse().ok()?)?;
        self.0 = rest;
        Some(word)
    }
}

impl<'a> IntoIterator for Pairs<'a> {
    type Item = (&'a str, &'a str);
    type IntoIter = PairsIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        PairsIter(self)
    }
}

/// Goes through [`Pairs`] in the order in which they were given.
pub struct PairsIter<'a>(Pairs<'a>);

impl<'a> Iterator for PairsIter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.word()?, self.0.word()?))
    }
}

// === impl ByKey ===

impl Borrow<str> for ByKey {
    fn borrow(&self) -> &str {
        self.0.key()
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(other.0.key())
    }
}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for ByKey {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_back_as_they_went_in() {
        let labels = [("app", "web"), ("empty", ""), ("odd:3", "7:\0ü")];
        let fields = [("spec.nodeName", "n1")];
        let stored = Stored::new(7, "a/b", Draft { body: b"{}".to_vec(), tags: Tags::new(labels, fields) });
        assert_eq!(stored.key(), "a/b");
        assert_eq!(stored.labels().into_iter().collect::<Vec<_>>(), labels);
        assert_eq!(stored.fields().into_iter().collect::<Vec<_>>(), fields);
        assert_eq!(stored.labels().get("odd:3"), Some("7:\0ü"));
        assert_eq!(stored.labels().get("spec.nodeName"), None);
        assert_eq!(stored.bytes(), "{}");
    }

    #[test]
    fn a_version_is_small() {
        assert_eq!(size_of::<Stored>(), 8);
        assert!(size_of::<Packed>() <= 56);
    }
}
