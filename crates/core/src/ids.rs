// SPDX-License-Identifier: Apache-2.0
//! Ids that can be made again: from a seed and a purpose, or from an object's UID.
//!
//! Ids of one purpose do not depend on how many were drawn for another, so adding a draw somewhere does not change
//! every other id in a recorded run.

use sha2::{Digest, Sha256};

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const LETTERS_AND_DIGITS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// The root of all ids of one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    seed: u64,
}

/// The ids of one purpose, in order.
#[derive(Clone, Debug)]
pub struct IdStream {
    key: [u8; 32],
    drawn: u64,
}

// === impl Ids ===

impl Ids {
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    pub fn purpose(&self, purpose: &str) -> IdStream {
        let mut hash = Sha256::new();
        hash.update(b"purpose\0");
        hash.update(self.seed.to_be_bytes());
        hash.update(purpose.as_bytes());
        IdStream { key: hash.finalize().into(), drawn: 0 }
    }
}

// === impl IdStream ===

impl IdStream {
    /// The next id: one lowercase letter, then letters and digits; a DNS label up to 63 long.
    pub fn next_label(&mut self, len: usize) -> String {
        let bytes = Bytes::new(&self.key, self.drawn);
        self.drawn += 1;
        spell(bytes, len)
    }

    /// The next 64 bits, for choices that are not names.
    pub fn next_u64(&mut self) -> u64 {
        let bytes = Bytes::new(&self.key, self.drawn);
        self.drawn += 1;
        bytes.take(8).fold(0, |sum, byte| (sum << 8) | u64::from(byte))
    }
}

/// The name of `len` characters that belongs to a UID: one lowercase letter, then letters and digits.
///
/// Whoever reads the UID can find the name again, also after a crash in the middle of using it. A shorter name is a
/// prefix of a longer one.
pub fn from_uid(uid: &str, len: usize) -> String {
    let mut hash = Sha256::new();
    hash.update(b"uid\0");
    hash.update(uid.as_bytes());
    spell(Bytes::new(&hash.finalize().into(), 0), len)
}

/// The UUID that belongs to a text. Version 8: how it is made is ours.
pub fn uuid_of(text: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(b"uuid\0");
    hash.update(text.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let number = digest.iter().take(16).fold(0_u128, |sum, byte| (sum << 8) | u128::from(*byte));
    let number = number & !(0xf << 76) & !(0b11 << 62) | (8 << 76) | (0b10 << 62);
    let digits = format!("{number:032x}");
    let part = |from, to| digits.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

fn spell(mut bytes: Bytes, len: usize) -> String {
    let alphabets = std::iter::once(LETTERS).chain(std::iter::repeat(LETTERS_AND_DIGITS));
    alphabets.take(len).map(|alphabet| bytes.pick(alphabet)).collect()
}

/// An endless row of bytes that follows from a key.
struct Bytes {
    prefix: Sha256,
    block: u64,
    ready: std::array::IntoIter<u8, 32>,
}

// === impl Bytes ===

impl Bytes {
    fn new(key: &[u8; 32], stream: u64) -> Self {
        let mut prefix = Sha256::new();
        prefix.update(key);
        prefix.update(stream.to_be_bytes());
        let mut bytes = Self { prefix, block: 0, ready: [0; 32].into_iter() };
        bytes.refill();
        bytes
    }

    fn refill(&mut self) {
        let digest: [u8; 32] = self.prefix.clone().chain_update(self.block.to_be_bytes()).finalize().into();
        self.block += 1;
        self.ready = digest.into_iter();
    }

    /// One symbol, each equally likely: bytes past the last whole run of the alphabet are skipped.
    fn pick(&mut self, alphabet: &[u8]) -> char {
        let fair = 256 - 256 % alphabet.len();
        self.map(usize::from)
            .find(|byte| *byte < fair)
            .and_then(|byte| alphabet.get(byte % alphabet.len()))
            .map_or('x', |symbol| char::from(*symbol))
    }
}

impl Iterator for Bytes {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.ready.len() == 0 {
            self.refill();
        }
        self.ready.next()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::names::is_dns1123_label;

    /// These are on disk and at clouds: a change here orphans machines.
    #[test]
    fn golden_names_do_not_change() {
        assert_eq!(from_uid("4b2c8f0e-7b1d-4a7e-9c62-1f0d3e5a6b7c", 12), "friksu4s8s5b");
        assert_eq!(uuid_of("claim/1"), "49f5b968-c0d0-883b-99b8-bcc9878cccdd");
        let mut ids = Ids::new(7).purpose("machines");
        assert_eq!([ids.next_label(8), ids.next_label(8)], ["l4ovlxl0", "v66nuuud"]);
    }

    #[test]
    fn purposes_do_not_disturb_each_other() {
        let mut alone = Ids::new(1).purpose("a");
        let mut beside = Ids::new(1).purpose("a");
        let mut other = Ids::new(1).purpose("b");
        for _ in 0..10 {
            other.next_u64();
            assert_eq!(alone.next_label(12), beside.next_label(12));
        }
    }

    #[test]
    fn ten_thousand_ids_are_distinct() {
        let mut ids = Ids::new(42).purpose("pods");
        let drawn: BTreeSet<String> = (0..10_000).map(|_| ids.next_label(10)).collect();
        assert_eq!(drawn.len(), 10_000);
    }

    #[test]
    fn every_symbol_appears() {
        let name: BTreeSet<char> = Ids::new(3).purpose("x").next_label(4_000).chars().collect();
        assert_eq!(name.len(), LETTERS_AND_DIGITS.len());
    }

    proptest! {
        #[test]
        fn names_are_labels(seed: u64, purpose: String, uid: String, len in 1..=63usize) {
            for name in [Ids::new(seed).purpose(&purpose).next_label(len), from_uid(&uid, len)] {
                prop_assert_eq!(name.len(), len);
                prop_assert!(is_dns1123_label(&name) && name.starts_with(|c: char| c.is_ascii_lowercase()));
            }
        }

        #[test]
        fn uids_decide(a: String, b: String) {
            prop_assert_eq!(from_uid(&a, 20) == from_uid(&b, 20), a == b);
            prop_assert!(from_uid(&a, 20).starts_with(&from_uid(&a, 9)));
        }

        #[test]
        fn seeds_differ(a: u64, b: u64) {
            prop_assert_eq!(Ids::new(a).purpose("x").next_u64() == Ids::new(b).purpose("x").next_u64(), a == b);
        }
    }
}
