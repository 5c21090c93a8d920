// SPDX-License-Identifier: Apache-2.0
//! Sets of machine kinds as bits: the packer asks them millions of times.

const WORD: usize = u64::BITS as usize;

/// Some of the machine kinds, by their places in the list of kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindSet(Vec<u64>);

// === impl KindSet ===

impl KindSet {
    /// All of so many kinds.
    pub fn all(count: usize) -> Self {
        (0..count).collect()
    }

    pub fn insert(&mut self, kind: usize) {
        if self.0.len() <= kind / WORD {
            self.0.resize(kind / WORD + 1, 0);
        }
        if let Some(word) = self.0.get_mut(kind / WORD) {
            *word |= 1 << (kind % WORD);
        }
    }

    pub fn has(&self, kind: usize) -> bool {
        has(&self.0, kind)
    }

    /// Its kinds, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        ones(&self.0)
    }

    /// The bits, with zeros at the end, so that all sets of one packing are equally long.
    pub(super) fn into_words(mut self, count: usize) -> Vec<u64> {
        self.0.resize(count, 0);
        self.0
    }
}

impl FromIterator<usize> for KindSet {
    fn from_iter<I: IntoIterator<Item = usize>>(kinds: I) -> Self {
        let mut set = Self::default();
        kinds.into_iter().for_each(|kind| set.insert(kind));
        set
    }
}

/// How many words hold so many kinds.
pub(super) fn words_for(kinds: usize) -> usize {
    kinds.div_ceil(WORD)
}

pub(super) fn has(words: &[u64], place: usize) -> bool {
    words.get(place / WORD).is_some_and(|word| (word >> (place % WORD)) & 1 == 1)
}

/// The place of the lowest bit that is set.
pub(super) fn lowest(words: impl IntoIterator<Item = u64>) -> Option<usize> {
    let (at, word) = words.into_iter().enumerate().find(|(_, word)| *word != 0)?;
    Some(at * WORD + word.trailing_zeros() as usize)
}

/// The places of the bits that are set, lowest first.
pub(super) fn ones(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(at, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (bit < WORD).then_some(at * WORD + bit)
        })
    })
}

/// Keeps what is in both.
pub(super) fn keep(words: &mut [u64], others: &[u64]) {
    words.iter_mut().zip(others).for_each(|(word, other)| *word &= other);
}
