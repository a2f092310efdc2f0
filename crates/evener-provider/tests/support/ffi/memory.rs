//! libcrypto's memory, which a test may take away.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

type Malloc = unsafe extern "C" fn(usize, *const c_char, c_int) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize, *const c_char, c_int) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void, *const c_char, c_int);

#[link(name = "crypto")]
unsafe extern "C" {
    fn CRYPTO_set_mem_functions(malloc: Malloc, realloc: Realloc, free: Free) -> c_int;
}

/// Allocations that go well from now on.
static LEFT: AtomicU32 = AtomicU32::new(u32::MAX);
static REFUSED: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Whether this is the program's one thread; all others are helpers of a split.
    static IS_CALLER: Cell<bool> = const { Cell::new(false) };
}

/// What helpers allocated and freed.
static ASKED_BY_HELPERS: AtomicU32 = AtomicU32::new(0);
static FREED_BY_HELPERS: AtomicU32 = AtomicU32::new(0);

/// Allocations of helpers so far, and what they freed.
pub fn by_helpers() -> (u32, u32) {
    (ASKED_BY_HELPERS.load(Relaxed), FREED_BY_HELPERS.load(Relaxed))
}

fn note(count: &AtomicU32) {
    count.fetch_add((!IS_CALLER.get()).into(), Relaxed);
}

/// Puts this file between libcrypto and its memory; before libcrypto does anything, by the program's one thread.
pub fn intercept() {
    IS_CALLER.set(true);
    // SAFETY: the functions do as the C library's.
    assert_eq!(unsafe { CRYPTO_set_mem_functions(malloc, realloc, free) }, 1);
}

/// Refuses every allocation from the one with this number on.
pub fn fail_from(number: u32) {
    REFUSED.store(0, Relaxed);
    LEFT.store(number, Relaxed);
}

/// Refuses none any more, and returns how many were.
pub fn spare() -> u32 {
    LEFT.store(u32::MAX, Relaxed);
    REFUSED.load(Relaxed)
}

fn is_refused() -> bool {
    note(&ASKED_BY_HELPERS);
    let take = |left: u32| if left == u32::MAX { Some(left) } else { left.checked_sub(1) };
    let is_refused = LEFT.fetch_update(Relaxed, Relaxed, take).is_err();
    REFUSED.fetch_add(is_refused.into(), Relaxed);
    is_refused
}

unsafe extern "C" fn malloc(bytes: usize, _: *const c_char, _: c_int) -> *mut c_void {
    if bytes == 0 || is_refused() {
        return ptr::null_mut();
    }
    // SAFETY: any length.
    unsafe { libc::malloc(bytes) }
}

unsafe extern "C" fn realloc(old: *mut c_void, bytes: usize, _: *const c_char, _: c_int) -> *mut c_void {
    if is_refused() {
        return ptr::null_mut();
    }
    // SAFETY: what `malloc` or this gave.
    unsafe { libc::realloc(old, bytes) }
}

unsafe extern "C" fn free(old: *mut c_void, _: *const c_char, _: c_int) {
    if !old.is_null() {
        note(&FREED_BY_HELPERS);
    }
    // SAFETY: as above.
    unsafe { libc::free(old) };
}
