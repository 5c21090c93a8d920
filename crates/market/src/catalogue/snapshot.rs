// SPDX-License-Identifier: Apache-2.0
//! What a catalogue is called: a hash of all that is in it, so that a decision can name the prices it was made with.

use std::fmt;

use sha2::{Digest, Sha256};

use super::build::Entry;
use super::{Chip, Kind, Place};

/// Equal for equal catalogues, in every process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Snapshot([u8; 32]);

/// So many bytes go to the hash at once.
const PIECE: usize = 8192;

/// Collects small pieces before they are hashed.
struct Writer {
    hash: Sha256,
    piece: Vec<u8>,
}

// === impl Snapshot ===

impl Snapshot {
    pub(super) fn of(
        clouds: &[String],
        places: &[Place],
        chips: &[Chip],
        kinds: &[Kind],
        starts: &[u32],
        entries: &[Entry],
    ) -> Self {
        let mut to = Writer { hash: Sha256::new(), piece: Vec::with_capacity(PIECE + 64) };
        to.add(b"bivouac catalogue 1\0");
        for table in [clouds.len(), places.len(), chips.len(), kinds.len()] {
            to.number(u32::try_from(table).unwrap_or(u32::MAX));
        }
        clouds.iter().for_each(|cloud| to.text(cloud));
        for place in places {
            to.number(place.cloud);
            to.text(&place.region);
            to.text(&place.zone);
        }
        for chip in chips {
            to.text(&chip.gpu.to_string());
            to.number(chip.memory_gib.map_or(u32::MAX, u32::from));
        }
        for kind in kinds {
            to.text(&kind.machine);
            for number in [kind.chip.unwrap_or(u32::MAX), kind.gpus, kind.cloud, kind.vcpus, kind.memory_mib] {
                to.number(number);
            }
            to.text(kind.arch.name());
        }
        starts.iter().for_each(|start| to.number(*start));
        for entry in entries {
            to.add(&entry.price.micros().to_le_bytes());
            to.number(entry.site);
            to.add(&[entry.flaw.map_or(0, |flaw| flaw as u8 + 1)]);
        }
        to.hash.update(&to.piece);
        Self(to.hash.finalize().into())
    }

    /// The first 12 digits: enough to find it again.
    pub fn short(&self) -> String {
        self.to_string().chars().take(12).collect()
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.short())
    }
}

// === impl Writer ===

impl Writer {
    fn add(&mut self, bytes: &[u8]) {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.hash.update(&self.piece);
            self.piece.clear();
        }
    }

    fn number(&mut self, number: u32) {
        self.add(&number.to_le_bytes());
    }

    /// With its length, so that two texts cannot be read as two others.
    fn text(&mut self, text: &str) {
        self.number(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.add(text.as_bytes());
    }
}
