// SPDX-License-Identifier: Apache-2.0
//! Randomness that follows from the seed. Hash maps, `select!` and random waits all take theirs from `getrandom`, so
//! this binary brings its own. It must never be in a process that makes keys: `bivouac` itself does not have it.

use std::{
    cell::RefCell,
    sync::atomic::{AtomicU64, Ordering},
};

use rand::{RngCore, SeedableRng, rngs::StdRng};

/// Not decided yet: the system's randomness.
const UNDECIDED: u64 = u64::MAX;

static SEED: AtomicU64 = AtomicU64::new(UNDECIDED);

thread_local! {
    static STREAM: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// From now on, threads that start take their randomness from this seed.
pub fn begin(seed: u64) {
    SEED.store(seed.min(UNDECIDED - 1), Ordering::SeqCst);
}

/// # Safety
/// As of the C function: `buffer` must be valid for writes of `length` bytes.
#[allow(unsafe_code, reason = "the one symbol that decides about randomness")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(
    buffer: *mut libc::c_void,
    length: libc::size_t,
    flags: libc::c_uint,
) -> libc::ssize_t {
    let seed = SEED.load(Ordering::SeqCst);
    if seed == UNDECIDED {
        // SAFETY: the caller's promise is passed on.
        return unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) } as libc::ssize_t;
    }
    // SAFETY: the caller promises that the buffer can be written.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    STREAM.with_borrow_mut(|stream| stream.get_or_insert_with(|| StdRng::seed_from_u64(seed)).fill_bytes(bytes));
    libc::ssize_t::try_from(length).unwrap_or(libc::ssize_t::MAX)
}
