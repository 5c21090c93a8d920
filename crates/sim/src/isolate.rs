// SPDX-License-Identifier: Apache-2.0
//! Each run in a process of its own, forked from the prepared one. What one run leaves in memory (counters of
//! libraries, keys of hash maps) can then not decide about the next, and a run that hangs or dies harms no other.
//!
//! Runs that differ only from some place on share what comes before it: there, one process becomes two.
#![allow(unsafe_code, reason = "fork, pipe and their like have no safe form")]

use std::{
    any::Any,
    cell::RefCell,
    fs::File,
    io::{BufRead, BufReader, Error, Read, Write},
    os::fd::{AsRawFd, FromRawFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use bivouac_sim::Fault;
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
    NotStarted(Error),
}

/// What a process says at its end, in one line.
#[derive(serde::Serialize, serde::Deserialize)]
struct Message<T> {
    /// Which of the ways it went; none of them if it ran straight on.
    way: Option<usize>,
    end: End<T>,
}

#[derive(serde::Serialize, serde::Deserialize)]
enum End<T> {
    Done(T),
    Panicked(String),
    Hung,
}

/// What a running process knows of its own ways.
struct Ways {
    to: File,
    wanted: Vec<Fault>,
    taken: Option<usize>,
    /// Closed when this process ends, which is how the one before it knows.
    _alive: Option<File>,
}

thread_local! {
    static WAYS: RefCell<Option<Ways>> = const { RefCell::new(None) };
}

/// Runs something in a fork of this process, with all randomness from the seed. This process must have one thread.
pub fn isolated<T: Serialize + DeserializeOwned>(seed: u64, run: impl FnOnce() -> T + Send) -> Result<T, Lost> {
    branching(seed, Vec::new(), run, |_, _| true)
}

/// The same, with a further process for each of the ways that [`crossroads`] is asked about. `heard` is told what came
/// of each, and whether to go on is its answer. The result is that of the process that took none of them.
pub fn branching<T: Serialize + DeserializeOwned>(
    seed: u64,
    ways: Vec<Fault>,
    run: impl FnOnce() -> T + Send,
    mut heard: impl FnMut(usize, Result<T, Lost>) -> bool,
) -> Result<T, Lost> {
    let (reading, writing) = pipe().map_err(Lost::NotStarted)?;
    // SAFETY: there is one thread, so the child finds every lock open.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(Lost::NotStarted(Error::last_os_error())),
        0 => {
            end_with_parent();
            entropy::begin(seed);
            drop(reading);
            on_a_thread(Ways { to: writing, wanted: ways, taken: None, _alive: None }, run);
            // SAFETY: ends the child without running what the parent will run at its own end.
            unsafe { libc::_exit(0) }
        }
        child => child,
    };
    drop(writing);
    let mut result = None;
    let mut lines = BufReader::new(Patient(reading)).lines();
    let lost = loop {
        let message = match lines.next() {
            None => break Lost::Panicked("the run ended without a result".to_owned()),
            Some(Err(_)) => break Lost::Hung,
            Some(Ok(line)) => serde_json::from_str::<Message<T>>(&line),
        };
        match message {
            Err(error) => break Lost::Panicked(format!("its result cannot be read: {error}")),
            Ok(Message { way: None, end }) => {
                result = Some(end.into_result());
                break Lost::Hung;
            }
            Ok(Message { way: Some(way), end }) => {
                if !heard(way, end.into_result()) {
                    break Lost::Hung;
                }
            }
        }
    };
    end(child);
    result.unwrap_or(Err(lost))
}

/// Whether this process is the one that goes this way. If somebody wants to know what is there, a copy of it goes first.
pub fn crossroads(fault: &Fault) -> bool {
    WAYS.with_borrow_mut(|ways| {
        let Some(ways) = ways.as_mut().filter(|ways| ways.taken.is_none()) else { return false };
        let Some(way) = ways.wanted.iter().position(|one| one == fault) else { return false };
        let Ok((reading, writing)) = pipe() else { return false };
        // SAFETY: the only other thread waits for this one and holds no lock.
        match unsafe { libc::fork() } {
            0 => {
                end_with_parent();
                (ways.taken, ways._alive) = (Some(way), Some(writing));
                true
            }
            -1 => false,
            child => {
                drop(writing);
                let in_time = Patient(reading).read(&mut [0]).is_ok();
                end(child);
                if !in_time {
                    say::<()>(&mut ways.to, Some(way), End::Hung);
                }
                false
            }
        }
    })
}

/// In the child: runs on a fresh thread, because a thread keeps the keys of its hash maps.
fn on_a_thread<T: Serialize>(ways: Ways, run: impl FnOnce() -> T + Send) {
    std::thread::scope(|scope| {
        let spare = ways.to.try_clone();
        let work = move || {
            WAYS.set(Some(ways));
            let end = catch_unwind(AssertUnwindSafe(run)).map_or_else(|panic| End::Panicked(words(&*panic)), End::Done);
            let Some(mut ways) = WAYS.take() else { return };
            say(&mut ways.to, ways.taken, end);
            if ways.taken.is_some() {
                // SAFETY: a copy has this thread alone. Nobody waits for it, and it must not go back into the code of
                // the one that does.
                unsafe { libc::_exit(0) }
            }
        };
        let thread = std::thread::Builder::new().stack_size(16 << 20).spawn_scoped(scope, work);
        if let (Err(error), Ok(mut to)) = (thread, spare) {
            say::<()>(&mut to, None, End::Panicked(format!("no thread: {error}")));
        }
    });
}

fn words(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().cloned();
    words.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

fn say<T: Serialize>(to: &mut File, way: Option<usize>, end: End<T>) {
    if let Ok(mut line) = serde_json::to_vec(&Message { way, end }) {
        line.push(b'\n');
        // Who does not hear it takes the silence for an answer.
        let _ = to.write_all(&line);
    }
}

impl<T> End<T> {
    fn into_result(self) -> Result<T, Lost> {
        match self {
            Self::Done(result) => Ok(result),
            Self::Panicked(words) => Err(Lost::Panicked(words)),
            Self::Hung => Err(Lost::Hung),
        }
    }
}

/// A pipe that one waits at for so long and no longer.
struct Patient(File);

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor, which lives.
        match unsafe { libc::poll(&mut poll, 1, i32::try_from(PATIENCE.as_millis()).unwrap_or(i32::MAX)) } {
            0 => Err(std::io::ErrorKind::TimedOut.into()),
            _ => self.0.read(buffer),
        }
    }
}

fn pipe() -> std::io::Result<(File, File)> {
    let mut ends: [RawFd; 2] = [0; 2];
    // SAFETY: the array has room for the two descriptors.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return Err(Error::last_os_error());
    }
    let [reading, writing] = ends;
    // SAFETY: both descriptors are fresh and ours.
    Ok(unsafe { (File::from_raw_fd(reading), File::from_raw_fd(writing)) })
}

/// Asks to end with the parent, so that nobody is left behind when it is killed.
fn end_with_parent() {
    // SAFETY: sets one flag of this process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Ends a child, if it has not ended yet, and forgets it.
fn end(child: libc::pid_t) {
    // SAFETY: the child is ours and was not waited for.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}
