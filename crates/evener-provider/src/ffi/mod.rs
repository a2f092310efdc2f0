//! OpenSSL's C interface as the rest of the provider sees it: tables and lists as slices, parameters, what libcrypto has by name, and the
//! macro that writes each function for C.

use std::slice;

use evener::counts_file::{DIRECTORY_VARIABLE, Directories};
use evener_ossl_sys::{Algorithm, Dispatch};

pub(crate) mod async_job;
pub(crate) mod key_copy;
pub(crate) mod key_memory;
mod loaded_file;
pub(crate) mod params;
pub(crate) mod private_libctx;
pub(crate) mod reserve;
pub(crate) mod thread_end;

/// Writes functions for C, the only place that does. `fn name[I]` is one function per slot of a table, as the core
/// passes no context there.
macro_rules! dispatch {
    ($($(#[$attribute:meta])* $visible:vis fn $name:ident $([$slot:ident])? ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {$(
        $(#[$attribute])*
        $visible unsafe extern "C" fn $name $(<const $slot: usize>)? ($($arg: $type),*) $(-> $result)? $body
    )*};
}
pub(crate) use dispatch;

/// The instances of a `fn name[I]`, by slot.
macro_rules! by_slot {
    ($name:ident) => { $crate::ffi::by_slot!($name: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    ($name:ident: $($slot:literal)*) => { [$($name::<$slot>),*] };
}
pub(crate) use by_slot;

/// As many algorithms of one operation as can be wrapped; 14 ciphers are offered. Each slot is a copy of some thirty entry points, whose
/// addresses the loader writes at each start.
pub(crate) const SLOTS: usize = 16;

/// A table of functions without its end.
///
/// # Safety
///
/// `table` is null or ends with number 0, and lives as long as the provider does.
pub(crate) unsafe fn table_of<'p>(table: *const Dispatch) -> &'p [Dispatch] {
    // SAFETY: the caller's word.
    unsafe { up_to(table, |entry| entry.function_id == 0) }
}

/// A list of algorithms without its end.
///
/// # Safety
///
/// `list` is null or ends with null names, and lives as long as the provider does.
pub(crate) unsafe fn list_of<'p>(list: *const Algorithm) -> &'p [Algorithm] {
    // SAFETY: the caller's word.
    unsafe { up_to(list, |algorithm| algorithm.names.is_null()) }
}

unsafe fn up_to<'p, T>(first: *const T, is_end: impl Fn(&T) -> bool) -> &'p [T] {
    if first.is_null() {
        return &[];
    }
    let mut count = 0;
    loop {
        // SAFETY: no entry before this one was the end, so that this one exists.
        let entry = unsafe { first.add(count) };
        // SAFETY: as above.
        if is_end(unsafe { &*entry }) {
            break;
        }
        count += 1;
    }
    // SAFETY: `count` entries were just read.
    unsafe { slice::from_raw_parts(first, count) }
}

/// The first of an algorithm's names. A loop, and to its end only: a program that starts reads some 130, and a first name is a fifth of all names.
pub(crate) fn first_name(algorithm: &Algorithm) -> &[u8] {
    let names = algorithm.names.cast::<u8>();
    let byte = |at: usize| {
        // SAFETY: a provider's names are constant text that ends in nul, where reading ends, too; `list_of` ended before null.
        let place = unsafe { names.add(at) };
        // SAFETY: as above.
        unsafe { *place }
    };
    let mut length = 0;
    while !matches!(byte(length), b':' | 0) {
        length += 1;
    }
    // SAFETY: so many were just read.
    unsafe { slice::from_raw_parts(names, length) }
}

/// Whether this process has rights that its user has not (set-user-id and the like).
pub(crate) fn has_raised_rights() -> bool {
    // SAFETY: reads a word that the kernel left for this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Where this process keeps files for others of its user: as the environment says, which a process with raised rights must not believe.
pub(crate) fn private_directories() -> Directories {
    if has_raised_rights() {
        Directories::default()
    } else {
        Directories::from_environment(DIRECTORY_VARIABLE)
    }
}

/// Has `hook` called in each child of `fork`.
pub(crate) fn at_fork_in_child(hook: unsafe extern "C" fn()) -> bool {
    // SAFETY: the hook only counts; the module is never unmapped (build.rs).
    unsafe { libc::pthread_atfork(None, None, Some(hook)) == 0 }
}
