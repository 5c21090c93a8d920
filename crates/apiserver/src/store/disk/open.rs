// SPDX-License-Identifier: Apache-2.0
//! Opening a store: everything that was acknowledged comes back, or the user is told what is wrong and where.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::super::Limits;
use super::super::state::State;
use super::names::{self, Names};
use super::record::{FORMAT, Fault, FileKind, Reader, Record};
use super::snapshot;
use super::writer::Log;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("the store in {} is open in process {owner}: stop that one first, or use another directory", dir.display())]
    Locked { dir: PathBuf, owner: String },
    #[error(
        "{} is damaged at byte {offset}: {found}. Nothing was changed. Put back a copy of the directory; or give up what \
         cannot be read: for a log, cut it off there (truncate -s {offset} FILE) and move the logs with higher numbers \
         away; for a snapshot, move the whole directory away and start empty",
        path.display()
    )]
    Damaged { path: PathBuf, offset: u64, found: String },
    #[error(
        "{} has format {found}, and this version reads up to format {FORMAT}: a newer version has written it. Use that \
         version, or another directory",
        path.display()
    )]
    Newer { path: PathBuf, found: u32 },
    #[error(
        "{} is missing: the files around it need the writes from revision {revision} on. Nothing was changed. Put back \
         the file or a copy of the directory, or move the directory away and start empty",
        path.display()
    )]
    Missing { path: PathBuf, revision: u64 },
}

/// Reads the directory into a state, and gives the log to go on with. The lock is held until its file is dropped.
pub fn open(dir: &Path, limits: &Limits) -> Result<(State, Log, File), OpenError> {
    let failed = |error| OpenError::io(dir, error);
    fs::create_dir_all(dir).map_err(failed)?;
    let lock = lock(dir)?;
    let names = Names::read(dir).map_err(failed)?;
    let mut state = match names.snapshots.last() {
        Some(revision) => snapshot::load(dir, *revision)?,
        None => State::default(),
    };
    let start = state.head;
    let last = replay(dir, &names, &mut state, limits)?;
    // Only now, when all is understood, is anything changed.
    let log = match last {
        Some((first, end)) => reuse(dir, first, end).map_err(failed)?,
        None => Log::create(dir, start + 1).map_err(failed)?,
    };
    Names::remove_before(dir, state.compacted).map_err(failed)?;
    match fs::remove_file(snapshot::draft(dir)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok((state, log, lock)),
    }
}

fn lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join("lock");
    let failed = |error| OpenError::io(&path, error);
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {
            file.set_len(0).map_err(failed)?;
            write!(file, "{}", std::process::id()).map_err(failed)?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            file.read_to_string(&mut owner).map_err(failed)?;
            Err(OpenError::Locked { dir: dir.to_owned(), owner })
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Applies the logs since the snapshot. Returns the last one and its sound length, or none if there is none yet.
fn replay(dir: &Path, names: &Names, state: &mut State, limits: &Limits) -> Result<Option<(u64, u64)>, OpenError> {
    let logs = names.logs.iter().filter(|first| **first > state.head);
    let logs: Vec<u64> = logs.copied().collect();
    let mut last = None;
    for first in &logs {
        let wanted = state.head + 1;
        if *first != wanted {
            return Err(OpenError::Missing { path: names::log(dir, wanted), revision: wanted });
        }
        let path = names::log(dir, *first);
        let end = match replay_log(&path, state, limits) {
            Ok(end) => end,
            Err(Fault::Torn { offset }) if logs.last() == Some(first) => {
                tracing::warn!(file = %path.display(), offset, "dropped a write that was cut off before it was acknowledged");
                offset
            }
            Err(fault) => return Err(OpenError::fault(&path, fault)),
        };
        last = Some((*first, end));
    }
    // Every snapshot has a log behind it, even if it is empty, and no store without a snapshot lacks its first log.
    if last.is_none() && (!names.snapshots.is_empty() || !names.logs.is_empty()) {
        let revision = state.head + 1;
        return Err(OpenError::Missing { path: names::log(dir, revision), revision });
    }
    Ok(last)
}

fn replay_log(path: &Path, state: &mut State, limits: &Limits) -> Result<u64, Fault> {
    let mut reader = Reader::new(BufReader::new(File::open(path)?), FileKind::Log)?;
    loop {
        let offset = reader.offset();
        let refuse = |found: String| Err(Fault::Damaged { offset, found });
        let (keyspace, stored, deleted) = match reader.record()? {
            Some(Record::Put(keyspace, stored)) => (keyspace, stored, false),
            Some(Record::Delete(keyspace, stored)) => (keyspace, stored, true),
            Some(Record::End { .. }) => return refuse("the end of a snapshot, which no log holds".to_owned()),
            None => return Ok(offset),
        };
        let (found, wanted) = (stored.revision(), state.head + 1);
        if found != wanted {
            return refuse(format!("revision {found} where {wanted} has to come"));
        }
        if deleted && state.space_mut(&keyspace).get_at(stored.key(), found).is_none() {
            return refuse(format!("{keyspace} {} is deleted but was not there", stored.key()));
        }
        state.apply(&keyspace, stored, deleted);
        state.publish(found, [&keyspace], limits);
    }
}

/// Takes up the last log where its sound part ends.
fn reuse(dir: &Path, first: u64, end: u64) -> io::Result<Log> {
    let path = names::log(dir, first);
    let mut file = OpenOptions::new().write(true).open(&path)?;
    if file.metadata()?.len() != end {
        file.set_len(end)?;
        file.sync_all()?;
    }
    let header = FileKind::Log.header();
    let mut len = file.seek(SeekFrom::End(0))?;
    if len == 0 {
        file.write_all(&header)?;
        file.sync_all()?;
        len = header.len() as u64;
    }
    Ok(Log { dir: dir.to_owned(), path, file, len })
}

// === impl OpenError ===

impl OpenError {
    pub fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub fn damaged(path: &Path, offset: u64, found: &str) -> Self {
        Self::Damaged { path: path.to_owned(), offset, found: found.to_owned() }
    }

    pub fn fault(path: &Path, fault: Fault) -> Self {
        match fault {
            Fault::Io(error) => Self::io(path, error),
            Fault::Torn { offset } => Self::damaged(path, offset, "the file ends within a record"),
            Fault::Damaged { offset, found } => Self::damaged(path, offset, &found),
            Fault::Newer { found } => Self::Newer { path: path.to_owned(), found },
        }
    }
}

// === impl Log ===

impl Log {
    /// Begins a new log for the writes from a revision on.
    pub fn create(dir: &Path, first: u64) -> io::Result<Self> {
        let path = names::log(dir, first);
        let header = FileKind::Log.header();
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        file.write_all(&header)?;
        file.sync_all()?;
        names::sync(dir)?;
        Ok(Self { dir: dir.to_owned(), path, file, len: header.len() as u64 })
    }
}
