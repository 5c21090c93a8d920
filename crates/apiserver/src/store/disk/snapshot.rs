// SPDX-License-Identifier: Apache-2.0
//! Snapshots: the store at one revision, in one file.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::super::state::State;
use super::super::stored::{Keyspace, Stored};
use super::names::{self, Names};
use super::open::OpenError;
use super::record::{FileKind, Reader, Record};

/// What a snapshot holds. Versions are pointers, so this is cheap to collect and can be written without the lock.
pub struct Content {
    pub revision: u64,
    pub spaces: Vec<(Keyspace, Vec<Stored>)>,
}

impl Content {
    /// Writes the snapshot beside its final name, makes it safe, puts it in place, and removes what it replaces.
    pub fn save(&self, dir: &Path) -> io::Result<u64> {
        let draft = draft(dir);
        let len = self.write(&draft).inspect_err(|_| drop(fs::remove_file(&draft)))?;
        fs::rename(&draft, names::snapshot(dir, self.revision))?;
        names::sync(dir)?;
        Names::remove_before(dir, self.revision)?;
        Ok(len)
    }

    fn write(&self, path: &Path) -> io::Result<u64> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        file.write_all(&FileKind::Snapshot.header())?;
        let mut versions = 0;
        let mut buffer = Vec::new();
        for (keyspace, objects) in &self.spaces {
            for stored in objects {
                buffer.clear();
                Record::Put(keyspace.clone(), stored.clone()).encode(&mut buffer);
                file.write_all(&buffer)?;
                versions += 1;
            }
        }
        buffer.clear();
        Record::End { revision: self.revision, versions }.encode(&mut buffer);
        file.write_all(&buffer)?;
        let file = file.into_inner()?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }
}

/// A snapshot that is still being written.
pub fn draft(dir: &Path) -> PathBuf {
    dir.join("snapshot.tmp")
}

/// Reads a snapshot. It must be whole: it was put in place only after it was safe on disk.
pub fn load(dir: &Path, revision: u64) -> Result<State, OpenError> {
    let path = names::snapshot(dir, revision);
    let refuse = |offset, found: &str| OpenError::damaged(&path, offset, found);
    let file = File::open(&path).map_err(|error| OpenError::io(&path, error))?;
    let fault = |fault| OpenError::fault(&path, fault);
    let mut reader = Reader::new(BufReader::new(file), FileKind::Snapshot).map_err(fault)?;
    let mut state = State::default();
    let mut versions = 0;
    loop {
        let offset = reader.offset();
        match reader.record().map_err(fault)? {
            None => return Err(refuse(offset, "the snapshot has no end")),
            Some(Record::Put(keyspace, stored)) => {
                if stored.revision() > revision || !state.space_mut(&keyspace).restore(stored) {
                    return Err(refuse(offset, "an object appears twice or is newer than the snapshot"));
                }
                versions += 1;
            }
            Some(Record::Delete(..)) => return Err(refuse(offset, "a deletion, which no snapshot holds")),
            Some(end) => {
                if end != (Record::End { revision, versions }) {
                    return Err(refuse(offset, "the end does not fit the name of the file or the number of objects"));
                }
                break;
            }
        }
    }
    let offset = reader.offset();
    if reader.record().map_err(fault)?.is_some() {
        return Err(refuse(offset, "something follows the end"));
    }
    state.head = revision;
    state.visible = revision;
    state.compacted = revision;
    Ok(state)
}
