//! libcrypto's memory, which a test may take away.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

type Malloc = unsafe extern "C" fn(usize, *const c_char, c_int) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize, *const c_char, c_int) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void, *const c_char, c_int);

#[link(name = "crypto")]
unsafe extern "C" {
    fn CRYPTO_set_mem_functions(malloc: Malloc, realloc: Realloc, free: Free) -> c_int;
    fn OPENSSL_version_major() -> c_uint;
}

/// Whether a thread survives that its first allocation fails. In 4.0 the error is put where there is no memory for it yet,
/// which is an error: without end (`CRYPTO_THREAD_set_local_ex`, crypto/threads_common.c).
pub fn is_survived_by_threads() -> bool {
    // SAFETY: it takes nothing.
    unsafe { OPENSSL_version_major() < 4 }
}

/// Allocations that go well from now on.
static LEFT: AtomicU32 = AtomicU32::new(u32::MAX);
static REFUSED: AtomicU32 = AtomicU32::new(0);

/// Puts this file between libcrypto and its memory; before libcrypto does anything.
pub fn intercept() {
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
    // SAFETY: as above.
    unsafe { libc::free(old) };
}
