// SPDX-License-Identifier: Apache-2.0
//! The directory that holds everything `bivouac up` remembers.
//!
//! | file | content |
//! |---|---|
//! | `state.json` | the format of all this, the port, whether the first camp was pitched |
//! | `lock` | held while a process runs here; says which, since when and where it listens |
//! | `identity.json` | the server's certificate and key, and the user's token |
//! | `kubeconfig` | for kubectl |
//! | `clouds.json` | where the simulated clouds are, and their keys |
//! | `store/` | the objects |
//! | `log`, `log.old`, `background.out` | what this run and the last one logged; what a background run printed |

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::cli::PlaceOptions;

/// Grows when an older version could no longer read what this one writes.
pub const FORMAT: u32 = 1;
/// `status` holds the lock for an instant; that is nobody running.
const LOCK_PATIENCE: Duration = Duration::from_millis(300);

const STATE: &str = "state.json";
const LOCK: &str = "lock";
pub const IDENTITY: &str = "identity.json";
pub const KUBECONFIG: &str = "kubeconfig";
pub const CLOUDS: &str = "clouds.json";
pub const STORE: &str = "store";
pub const LOG: &str = "log";
pub const OLD_LOG: &str = "log.old";
pub const OUTPUT: &str = "background.out";

/// What can be wrong with it, in words for the person who started it.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error("there is no home directory to keep the state in.\nSay where with --data-dir.")]
    Homeless,
    #[error("{} is not a directory.\nChoose another place with --data-dir.", .0.display())]
    NotADirectory(PathBuf),
    #[error(
        "{} holds other files and no state of Bivouac; nothing was changed.\nChoose an empty or new directory with --data-dir.",
        .0.display()
    )]
    NotOurs(PathBuf),
    #[error(
        "{} has format {found}, and this version reads up to format {FORMAT}: a newer version has written it.\n\
         Nothing was changed. Use that version, or another directory with --data-dir.",
        path.display()
    )]
    Newer { path: PathBuf, found: u64 },
    #[error(
        "{} cannot be read: {found}.\nNothing was changed. Put back a copy of the directory, or move it away and start new.",
        path.display()
    )]
    Damaged { path: PathBuf, found: String },
    #[error("Bivouac runs already on {} {}.\nStop it with `{stop}`, or use another directory with --data-dir.", dir.display(), by(*pid))]
    Running { dir: PathBuf, pid: Option<u32>, stop: String },
    #[error("the disk is full: {}: {source}.\nNothing is lost. Free some space there, then start again.", path.display())]
    Full { path: PathBuf, source: io::Error },
    #[error("{} cannot be written: {source}.\nGive yourself the rights, or choose another place with --data-dir.", path.display())]
    NotWritable { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn by(pid: Option<u32>) -> String {
    pid.map_or("(it is just starting)".to_owned(), |pid| format!("(process {pid})"))
}

/// A place for the state, not looked at yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDir {
    path: PathBuf,
}

/// What is remembered from one start to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub format: u32,
    /// The version that wrote it last, for people.
    pub version: String,
    pub port: Option<u16>,
    pub camp: Camp,
}

/// What became of the first camp. It is a matter of the first start: what the user has deleted of it stays deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Camp {
    #[default]
    Undecided,
    Pitched,
    LeftOut,
}

/// The process that runs here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    pub pid: u32,
    pub since: Timestamp,
    pub address: Option<String>,
    pub ready: bool,
}

/// Who holds the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    Nobody,
    /// It has not said yet who it is.
    Unknown,
    Instance(Instance),
}

/// The lock, held until this is dropped.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    file: File,
}

// === impl DataDir ===

impl DataDir {
    pub fn of(place: &PlaceOptions) -> Result<Self, Trouble> {
        let path = place.data_dir.clone().or_else(Self::default_path).ok_or(Trouble::Homeless)?;
        Ok(Self { path: std::path::absolute(&path).unwrap_or(path) })
    }

    pub fn default_path() -> Option<PathBuf> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")))?;
        Some(data.join("bivouac"))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes the directory if it is not there, and sees that it is ours and that we understand it.
    pub fn prepare(&self) -> Result<State, Trouble> {
        match fs::metadata(&self.path) {
            Ok(meta) if !meta.is_dir() => return Err(Trouble::NotADirectory(self.path.clone())),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => private_folder(&self.path)?,
            Err(error) => return Err(trouble(&self.path, error)),
        }
        if let Some(state) = self.state()? {
            return Ok(state);
        }
        self.refuse_others()?;
        let state =
            State { format: FORMAT, version: env!("CARGO_PKG_VERSION").into(), port: None, camp: Camp::Undecided };
        self.remember(&state)?;
        Ok(state)
    }

    /// Refuses a directory in which nothing of ours ever was, but something else is.
    pub fn refuse_others(&self) -> Result<(), Trouble> {
        if self.file(STATE).exists() {
            return Ok(());
        }
        let mut entries = fs::read_dir(&self.path).map_err(|error| trouble(&self.path, error))?;
        // A first start that was cut off leaves the lock and drafts, which are ours.
        match entries.any(|entry| entry.is_ok_and(|entry| !is_ours(&entry.file_name().to_string_lossy()))) {
            true => Err(Trouble::NotOurs(self.path.clone())),
            false => Ok(()),
        }
    }

    /// What is remembered; none if nothing ever ran here.
    pub fn state(&self) -> Result<Option<State>, Trouble> {
        let path = self.file(STATE);
        let Some(value) = self.read::<serde_json::Value>(STATE)? else { return Ok(None) };
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(found) if found > u64::from(FORMAT) => return Err(Trouble::Newer { path, found }),
            _ => {}
        }
        let state = serde_json::from_value(value);
        state.map(Some).map_err(|error| Trouble::Damaged { path, found: error.to_string() })
    }

    pub fn remember(&self, state: &State) -> Result<(), Trouble> {
        self.write(STATE, &State { format: FORMAT, version: env!("CARGO_PKG_VERSION").into(), ..state.clone() })
    }

    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Trouble> {
        let path = self.file(name);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| Trouble::Damaged { path, found: error.to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(trouble(&path, error)),
        }
    }

    /// Writes a file that only its owner can read, wholly or not at all.
    pub fn write(&self, name: &str, content: &impl Serialize) -> Result<(), Trouble> {
        let (path, draft) = (self.file(name), self.file(&format!("{name}.new")));
        let failed = |error| trouble(&path, error);
        let bytes = serde_json::to_vec_pretty(content).map_err(|error| failed(error.into()))?;
        let written = private(&draft).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        });
        let outcome = written.and_then(|()| fs::rename(&draft, &path));
        outcome.map_err(|error| {
            let _ = fs::remove_file(&draft);
            failed(error)
        })
    }

    /// An empty file that only its owner can read.
    pub fn create(&self, name: &str) -> Result<File, Trouble> {
        let path = self.file(name);
        private(&path).map_err(|error| trouble(&path, error))
    }

    pub fn make_private_folder(&self, name: &str) -> Result<(), Trouble> {
        private_folder(&self.file(name))
    }

    /// Makes this process the one that runs here.
    pub fn hold(&self) -> Result<Held, Trouble> {
        let path = self.file(LOCK);
        let failed = |error| trouble(&path, error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(failed)?;
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
                Err(fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(fs::TryLockError::WouldBlock) => {
                    let pid = read_instance(&file).map(|instance| instance.pid);
                    let stop = super::own_command("down", self);
                    return Err(Trouble::Running { dir: self.path.clone(), pid, stop });
                }
            }
        }
        let mut held = Held { path, file };
        held.say(&Instance { pid: std::process::id(), since: Timestamp::now(), address: None, ready: false })?;
        Ok(held)
    }

    /// Who runs here. The lock is what counts: a process that was killed has left its words, but not the lock.
    pub fn holder(&self) -> Holder {
        let Ok(file) = File::open(self.file(LOCK)) else { return Holder::Nobody };
        match file.try_lock_shared() {
            Ok(()) => Holder::Nobody,
            Err(_) => read_instance(&file).map_or(Holder::Unknown, Holder::Instance),
        }
    }

    /// Deletes what is ours, and the directory if nothing else is in it.
    pub fn delete(&self) -> Result<(), Trouble> {
        let entries = fs::read_dir(&self.path).map_err(|error| trouble(&self.path, error))?;
        // The state goes last: until then the directory is known as ours, and a deletion that was cut off can go on.
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into()).collect();
        names.sort_by_key(|name| name == STATE);
        for name in names.iter().filter(|name| is_ours(name)) {
            let path = self.file(name);
            let gone = if name == STORE { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            gone.map_err(|error| trouble(&path, error))?;
        }
        // Others' files keep it.
        let _ = fs::remove_dir(&self.path);
        Ok(())
    }
}

// === impl Held ===

impl Held {
    /// Tells `status` and `down` about this process.
    pub fn say(&mut self, instance: &Instance) -> Result<(), Trouble> {
        let mut text = serde_json::to_vec(instance).unwrap_or_default();
        text.push(b'\n');
        let file = &mut self.file;
        let written = file.rewind().and_then(|()| file.write_all(&text)).and_then(|()| file.set_len(text.len() as u64));
        written.map_err(|error| trouble(&self.path, error))
    }
}

fn read_instance(mut file: &File) -> Option<Instance> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(text.lines().next()?).ok()
}

fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(".new").unwrap_or(name);
    [STATE, LOCK, IDENTITY, KUBECONFIG, CLOUDS, STORE, LOG, OLD_LOG, OUTPUT].contains(&name)
}

fn private_folder(path: &Path) -> Result<(), Trouble> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| trouble(path, error))
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

pub fn trouble(path: &Path, source: io::Error) -> Trouble {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Trouble::Full { path, source }
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Trouble::NotWritable { path, source },
        io::ErrorKind::NotADirectory => Trouble::NotADirectory(path),
        _ => Trouble::Io { path, source },
    }
}

#[cfg(test)]
mod tests;
