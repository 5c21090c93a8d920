// SPDX-License-Identifier: Apache-2.0
//! Sets of completion indexes, in the short text that a Job's status has for them: `0,2-5,7`.

use std::fmt;

/// Runs of indexes from and to, in order, with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes(Vec<(i32, i32)>);

impl Indexes {
    /// What is not less than `completions` is left out, and so is what is not a number.
    pub fn parse(text: &str, completions: i32) -> Self {
        let run = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.parse().ok()?, last.parse::<i32>().ok()?.min(completions - 1)))
        };
        let runs = text.split(',').filter_map(run).filter(|(first, _): &(i32, i32)| *first < completions);
        Self::of_runs(runs)
    }

    fn of_runs(runs: impl IntoIterator<Item = (i32, i32)>) -> Self {
        let mut sorted: Vec<(i32, i32)> = runs.into_iter().collect();
        sorted.sort_unstable();
        let mut joined: Vec<(i32, i32)> = Vec::with_capacity(sorted.len());
        for (first, last) in sorted {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => joined.push((first, last)),
            }
        }
        Self(joined)
    }

    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = i32>) -> Self {
        Self::of_runs(self.0.iter().copied().chain(more.into_iter().map(|index| (index, index))))
    }

    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self::of_runs(self.0.iter().chain(&other.0).copied())
    }

    pub fn has(&self, index: i32) -> bool {
        let after = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(after).is_some_and(|(first, _)| *first <= index)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn total(&self) -> i32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// How many indexes are in both.
    pub fn shared(&self, other: &Self) -> i32 {
        let both = |a: &(i32, i32), b: &(i32, i32)| (a.1.min(b.1) - a.0.max(b.0) + 1).max(0);
        self.0.iter().map(|a| other.0.iter().map(|b| both(a, b)).sum::<i32>()).sum()
    }

    /// The first indexes that are not here.
    pub fn missing(&self, completions: i32) -> impl Iterator<Item = i32> {
        let starts = std::iter::once(0).chain(self.0.iter().map(|(_, last)| last + 1));
        let ends = self.0.iter().map(|(first, _)| *first).chain(std::iter::once(completions));
        starts.zip(ends).flat_map(move |(from, to)| from..to.min(completions))
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_short_and_read_back() {
        let cases =
            [("", ""), ("3", "3"), ("1,2", "1,2"), ("1,2,3", "1-3"), ("0-2,4,6-9", "0-2,4,6-9"), ("4,x,5-6", "4-6")];
        for (text, expected) in cases {
            assert_eq!(Indexes::parse(text, 100).to_string(), expected, "{text}");
        }
        assert_eq!(Indexes::parse("0-2,4,6-9", 7).to_string(), "0-2,4,6", "cut at the completions");
        assert_eq!(Indexes::parse("7-9", 7), Indexes::default());
    }

    #[test]
    fn sets_grow_and_tell_their_gaps() {
        let set = Indexes::default().with([7, 1, 2]).with([3, 9]);
        assert_eq!((set.to_string().as_str(), set.total()), ("1-3,7,9", 5));
        assert!(set.has(2) && set.has(9) && !set.has(0) && !set.has(8) && !set.has(10));
        assert_eq!(set.missing(12).collect::<Vec<_>>(), [0, 4, 5, 6, 8, 10, 11]);
        assert_eq!(set.missing(2).collect::<Vec<_>>(), [0]);
        assert_eq!(set.shared(&Indexes::parse("2-8", 100)), 3);
        assert_eq!(set.and(&Indexes::parse("4-6", 100)).to_string(), "1-7,9");
    }
}
