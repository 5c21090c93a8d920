// SPDX-License-Identifier: Apache-2.0
//! Each run in a process of its own, forked from the prepared one. What one run leaves in memory (counters of
//! libraries, keys of hash maps) can then not decide about the next, and a run that hangs or dies harms no other.
#![allow(unsafe_code, reason = "fork, pipe and their like have no safe form")]

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::{AsRawFd, FromRawFd, RawFd},
    time::{Duration, Instant},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::entropy;

/// Runs may be long on a loaded machine; one that does nothing for so long never ends.
const PATIENCE: Duration = Duration::from_secs(120);

/// Why there is no result.
#[derive(Debug)]
pub enum Lost {
    /// It panicked, with these words.
    Panicked(String),
    /// It was still running when its time was over.
    Hung,
    /// It could not even be started.
    NotStarted(std::io::Error),
}

#[derive(serde::Serialize, serde::Deserialize)]
enum Message<T> {
    Done(T),
    Panicked(String),
}

/// Runs something in a fork of this process, with all randomness from the seed. This process must have one thread.
pub fn isolated<T: Serialize + DeserializeOwned + Send>(seed: u64, run: impl FnOnce() -> T + Send) -> Result<T, Lost> {
    let mut ends: [RawFd; 2] = [0; 2];
    // SAFETY: the array has room for the two descriptors.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return Err(Lost::NotStarted(std::io::Error::last_os_error()));
    }
    let [reading, writing] = ends;
    // SAFETY: both descriptors are fresh and ours.
    let (mut reading, writing) = unsafe { (File::from_raw_fd(reading), File::from_raw_fd(writing)) };
    // SAFETY: there is one thread, so the child finds every lock open.
    match unsafe { libc::fork() } {
        -1 => Err(Lost::NotStarted(std::io::Error::last_os_error())),
        0 => {
            // SAFETY: asks to end with the parent, so that nobody is left behind when it is killed.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            entropy::begin(seed);
            drop(reading);
            tell(writing, run);
            // SAFETY: ends the child without running what the parent will run at its own end.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(writing);
            let answer = hear(&mut reading);
            if answer.is_none() {
                // SAFETY: the child is ours and was not waited for.
                unsafe { libc::kill(child, libc::SIGKILL) };
            }
            let mut status = 0;
            // SAFETY: as above.
            unsafe { libc::waitpid(child, &mut status, 0) };
            match answer.map(|bytes| serde_json::from_slice(&bytes)) {
                None => Err(Lost::Hung),
                Some(Ok(Message::Done(result))) => Ok(result),
                Some(Ok(Message::Panicked(words))) => Err(Lost::Panicked(words)),
                Some(Err(_)) => Err(Lost::Panicked(format!("the run ended without a result, status {status}"))),
            }
        }
    }
}

/// In the child: runs on a fresh thread, because a thread keeps the keys of its hash maps.
fn tell<T: Serialize + Send>(mut to: File, run: impl FnOnce() -> T + Send) {
    let message = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(16 << 20).spawn_scoped(scope, run);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => Message::Done(result),
            Ok(Err(panic)) => {
                let words = panic.downcast_ref::<String>().cloned();
                let words = words.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                Message::Panicked(words.unwrap_or_default())
            }
            Err(error) => Message::Panicked(format!("no thread: {error}")),
        }
    });
    if let Ok(bytes) = serde_json::to_vec(&message) {
        let _ = to.write_all(&bytes);
    }
}

/// In the parent: everything that the child says, if it comes in time.
fn hear(from: &mut File) -> Option<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let (mut all, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut poll = libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor, which lives.
        let ready = unsafe { libc::poll(&mut poll, 1, i32::try_from(left.as_millis()).unwrap_or(i32::MAX)) };
        if ready == 0 {
            return None;
        }
        match from.read(&mut chunk) {
            Ok(0) => return Some(all),
            Ok(length) => all.extend_from_slice(chunk.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Some(all),
        }
    }
}
