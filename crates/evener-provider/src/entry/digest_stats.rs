//! Digests that are counted: where a process counts at all, its hashes are counted too.
//!
//! Contexts are the inner provider's own; three entry points stand before its functions: a message begins, has more bytes, ends. Each
//! looks into what is its thread's (`counters/thread_table.rs`) and jumps. A context does not show its algorithm, so the entry points of
//! a slot lead to one set of inner functions, in a static: of a libcrypto they are the same for each library context, and it is found by
//! them.

use std::ffi::{c_int, c_uchar, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};

use evener::counts_file::ThreadDigests;
use evener_core::counts::Kind;
use evener_ossl_sys::{DigestFinal, DigestInit, DigestUpdate, Dispatch, Function, Param, number};

use crate::core::find;
use crate::counters;
use crate::counters::thread_table::{current_thread, with_current_thread};
use crate::ffi::{SLOTS, by_slot, dispatch};
use crate::inner_provider::dispatch_table::erased;

/// Where the entry points of a place lead.
struct InnerDigest {
    /// [`FREE`], [`TAKEN`] by a thread that fills it, or [`READY`] for good.
    state: AtomicU32,
    init: AtomicPtr<c_void>,
    update: AtomicPtr<c_void>,
    last: AtomicPtr<c_void>,
    /// Where messages are counted ([`ThreadDigests::first`]).
    first: AtomicUsize,
}

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const READY: u32 = 2;

/// Those of all libcryptos of the process: eight, as each has eight digests that are counted.
static INNER_DIGESTS: [InnerDigest; SLOTS] = [const {
    InnerDigest {
        state: AtomicU32::new(FREE),
        init: AtomicPtr::new(ptr::null_mut()),
        update: AtomicPtr::new(ptr::null_mut()),
        last: AtomicPtr::new(ptr::null_mut()),
        first: AtomicUsize::new(0),
    }
}; SLOTS];

/// The functions that stand in a counted digest's table instead of these inner ones. None where the digest lacks what every digest
/// has, or there have been too many.
pub(super) fn replacements(functions: &[Dispatch], kind: Kind) -> Vec<(c_int, Function)> {
    static INIT: [DigestInit; SLOTS] = by_slot!(init);
    static UPDATE: [DigestUpdate; SLOTS] = by_slot!(update);
    static LAST: [DigestFinal; SLOTS] = by_slot!(last);
    let slot = || {
        let init = find!(functions, DIGEST_INIT: DigestInit)?;
        let update = find!(functions, DIGEST_UPDATE: DigestUpdate)?;
        let last = find!(functions, DIGEST_FINAL: DigestFinal)?;
        let inner = [init as *mut c_void, update as *mut c_void, last as *mut c_void];
        slot_of(inner, ThreadDigests::first(kind))
    };
    slot().map_or_else(Vec::new, |slot| {
        vec![
            (number::DIGEST_INIT, erased!(INIT[slot], DigestInit)),
            (number::DIGEST_UPDATE, erased!(UPDATE[slot], DigestUpdate)),
            (number::DIGEST_FINAL, erased!(LAST[slot], DigestFinal)),
        ]
    })
}

/// The entry points that lead to these functions. No thread waits: one that meets another one at work takes the next place.
fn slot_of([init, update, last]: [*mut c_void; 3], first: usize) -> Option<usize> {
    INNER_DIGESTS.iter().position(|way| {
        // Relaxed: the thread that takes it reads nothing.
        if way.state.compare_exchange(FREE, TAKEN, Relaxed, Relaxed).is_ok() {
            way.init.store(init, Relaxed);
            way.update.store(update, Relaxed);
            way.last.store(last, Relaxed);
            way.first.store(first, Relaxed);
            // Release: pairs with the Acquire below.
            way.state.store(READY, Release);
            return true;
        }
        // Acquire: pairs with the Release above; a thread that sees READY sees the functions.
        way.state.load(Acquire) == READY
            && way.init.load(Relaxed) == init
            && way.update.load(Relaxed) == update
            && way.last.load(Relaxed) == last
            && way.first.load(Relaxed) == first
    })
}

dispatch! {
    fn init[SLOT](ctx: *mut c_void, params: *const Param) -> c_int {
        if !current_thread().is_some_and(|hashes| hashes.begins(ctx.addr())) {
            // SAFETY: the caller's word.
            return unsafe { init_other::<SLOT>(ctx, params) };
        }
        // SAFETY: in a place whose entry points are open stands a function of this type.
        let inner = unsafe { transmute::<*mut c_void, DigestInit>(INNER_DIGESTS[SLOT].init.load(Relaxed)) };
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { inner(ctx, params) }
    }

    /// Another context than before, or a thread that was not here yet.
    #[cold]
    #[inline(never)]
    fn init_other[SLOT](ctx: *mut c_void, params: *const Param) -> c_int {
        let way = &INNER_DIGESTS[SLOT];
        with_current_thread(|hashes| hashes.begin(ctx.addr(), way.first.load(Relaxed)));
        // SAFETY: as above.
        let inner = unsafe { transmute::<*mut c_void, DigestInit>(way.init.load(Relaxed)) };
        // SAFETY: as above.
        unsafe { inner(ctx, params) }
    }

    fn update[SLOT](ctx: *mut c_void, input: *const c_uchar, len: usize) -> c_int {
        if !current_thread().is_some_and(|hashes| hashes.goes_on(ctx.addr(), len)) {
            // SAFETY: the caller's word.
            return unsafe { update_other::<SLOT>(ctx, input, len) };
        }
        // SAFETY: as above.
        let inner = unsafe { transmute::<*mut c_void, DigestUpdate>(INNER_DIGESTS[SLOT].update.load(Relaxed)) };
        // SAFETY: as above.
        unsafe { inner(ctx, input, len) }
    }

    /// As `init_other`.
    #[cold]
    #[inline(never)]
    fn update_other[SLOT](ctx: *mut c_void, input: *const c_uchar, len: usize) -> c_int {
        let way = &INNER_DIGESTS[SLOT];
        with_current_thread(|hashes| hashes.update(ctx.addr(), way.first.load(Relaxed), len));
        // SAFETY: as above.
        let inner = unsafe { transmute::<*mut c_void, DigestUpdate>(way.update.load(Relaxed)) };
        // SAFETY: as above.
        unsafe { inner(ctx, input, len) }
    }

    fn last[SLOT](ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, space: usize) -> c_int {
        let first = INNER_DIGESTS[SLOT].first.load(Relaxed);
        if !current_thread().is_some_and(|hashes| hashes.finishes(ctx.addr(), first)) {
            // SAFETY: the caller's word.
            return unsafe { last_other::<SLOT>(ctx, out, written, space) };
        }
        // SAFETY: as above.
        let inner = unsafe { transmute::<*mut c_void, DigestFinal>(INNER_DIGESTS[SLOT].last.load(Relaxed)) };
        // SAFETY: as above.
        unsafe { inner(ctx, out, written, space) }
    }

    /// The same, or a message that is to go into the file, with those before it.
    #[cold]
    #[inline(never)]
    fn last_other[SLOT](ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, space: usize) -> c_int {
        let way = &INNER_DIGESTS[SLOT];
        with_current_thread(|hashes| {
            if hashes.finish(ctx.addr(), way.first.load(Relaxed)) {
                counters::flush_hashes(hashes);
            }
        });
        // SAFETY: as above.
        let inner = unsafe { transmute::<*mut c_void, DigestFinal>(way.last.load(Relaxed)) };
        // SAFETY: as above.
        unsafe { inner(ctx, out, written, space) }
    }
}
