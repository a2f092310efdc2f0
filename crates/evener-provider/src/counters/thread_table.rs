//! What each thread hashes, found without a call: by the address of its control block.
//!
//! Path: [`current_thread`] is one look at the place to which the address leads -> where it is not this thread's, [`with_current_thread`] takes it if it is
//! free, or goes on with a value of its own, which costs a call and what is to be saved around it -> at the thread's end all goes into the
//! file, and the place is free again.

use std::cell::UnsafeCell;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use evener::counts_file::ThreadDigests;
use evener_ring::{ThreadValue, hold_cancellation};

use crate::counters;
use crate::ffi::thread_end;

/// What a thread hashes, in memory of a length that takes no multiplication.
#[repr(align(2048))]
struct Slot {
    /// The thread that it belongs to; 0: free.
    owner: AtomicUsize,
    hashes: UnsafeCell<ThreadDigests>,
}

// SAFETY: `hashes` is touched by the owner alone, and handed on by `owner`.
unsafe impl Sync for Slot {}

/// As many threads as do not meet by chance are found in the short way. Assumed, not measured: 256, because of 64 threads a tenth then
/// share a place with another.
const COUNT: usize = 256;

/// 2^64 by the golden ratio, which spreads numbers in sequence, and that by 4096: blocks lie pages apart, in memory that differs
/// by the size of stacks, and what is divided here need not be shifted there.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15 >> 12;

static ALL: [Slot; COUNT] =
    [const { Slot { owner: AtomicUsize::new(0), hashes: UnsafeCell::new(ThreadDigests::new()) } }; COUNT];

/// Which of them ever had an owner, a bit each: a child of a fork looks at no others.
static USED: [AtomicUsize; COUNT.div_ceil(BITS)] = [const { AtomicUsize::new(0) }; COUNT.div_ceil(BITS)];

const BITS: usize = usize::BITS as usize;

/// This thread, as no other that runs. The same number may be a later thread's.
#[inline]
fn this() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let own: usize;
        // SAFETY: on Linux the word at the segment's start is its own address.
        unsafe { std::arch::asm!("mov {}, fs:0", out(reg) own, options(nostack, preserves_flags, readonly)) };
        own
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // SAFETY: takes nothing.
        let own = unsafe { libc::pthread_self() };
        own as usize
    }
}

/// Where a thread has its place.
#[inline]
fn index(thread: usize) -> usize {
    let mixed = (thread as u64).wrapping_mul(GOLDEN) >> (u64::BITS - COUNT.ilog2());
    usize::try_from(mixed).unwrap_or(0)
}

/// What this thread hashes, where it has a place of its own.
#[inline]
pub(crate) fn current_thread() -> Option<&'static ThreadDigests> {
    let thread = this();
    let place = &ALL[index(thread)];
    // Relaxed: only this thread writes its number, and takes it away.
    if place.owner.load(Relaxed) != thread {
        return None;
    }
    // SAFETY: this thread owns the place until its end.
    Some(unsafe { &*place.hashes.get() })
}

/// What this thread hashes, wherever that is; nothing is counted where no memory is to be had.
pub(crate) fn with_current_thread(body: impl FnOnce(&ThreadDigests)) {
    // The first flush of a process makes its file.
    let _held = hold_cancellation();
    match take() {
        Some(hashes) => body(hashes),
        None => _ = ELSEWHERE.with(|elsewhere| body(&elsewhere.0)),
    }
}

fn take() -> Option<&'static ThreadDigests> {
    current_thread().or_else(|| {
        let thread = this();
        let index = index(thread);
        let owner = &ALL[index].owner;
        // A look first: a thread that finds another one there does so with each call.
        if owner.load(Relaxed) != 0 || !thread_end::arm() {
            return None;
        }
        // Acquire: pairs with the Release of an owner's end; what it did to the place is done.
        owner.compare_exchange(0, thread, Acquire, Relaxed).ok()?;
        // Relaxed: for a child, to which all is visible that was written before its fork.
        USED[index / BITS].fetch_or(1 << (index % BITS), Relaxed);
        current_thread()
    })
}

/// Clears the counts in the child of a fork: what the parent hashed is the parent's, and its other threads do not run here. Only memory is written.
pub(crate) fn clear_after_fork() {
    let is_used = |index: &usize| USED[index / BITS].load(Relaxed) >> (index % BITS) & 1 == 1;
    for place in (0..COUNT).filter(is_used).map(|index| &ALL[index]) {
        // SAFETY: the owner is this thread, which is in `fork`, or one that does not exist in this process, or there is none.
        unsafe { place.hashes.get().write(ThreadDigests::new()) };
        if place.owner.load(Relaxed) != this() {
            place.owner.store(0, Relaxed);
        }
    }
}

/// Of a thread whose place is another one's, or that cannot be heard of at its end.
struct Elsewhere(ThreadDigests);

static ELSEWHERE: ThreadValue<Elsewhere> = ThreadValue::new(|| Elsewhere(ThreadDigests::new()));

impl Drop for Elsewhere {
    fn drop(&mut self) {
        counters::finish_hashes(&self.0);
    }
}

/// Has the counts of each thread moved into the file at its end. Called while a provider is loaded.
pub(super) fn prepare() {
    ELSEWHERE.prepare();
    thread_end::prepare(finish_current_thread);
}

/// Flushes what this thread hashed, which ends.
fn finish_current_thread() {
    if let Some(hashes) = current_thread() {
        counters::finish_hashes(hashes);
        let place = &ALL[index(this())];
        // SAFETY: this thread's still, and not borrowed.
        unsafe { place.hashes.get().write(ThreadDigests::new()) };
        // Release: pairs with the Acquire of the thread that takes the place.
        place.owner.store(0, Release);
    }
    ELSEWHERE.with_made(|elsewhere| counters::finish_hashes(&elsewhere.0));
}
