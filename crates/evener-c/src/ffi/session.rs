//! Sessions: open, close, lengths.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::slice;
use std::sync::Arc;

use evener::core::Padding;

use super::runtime::direction_of;
use super::{answer, give, invalid, name};
use crate::abi::PADDING;
use crate::runtime::Runtime;
use crate::session::Session;

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_session_open(
    runtime: *const Runtime,
    session: *mut *const Session,
    algorithm: *const c_char,
    direction: c_int,
    flags: c_uint,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    answer(|| {
        if runtime.is_null() || session.is_null() || (key.is_null() && key_len > 0) {
            return Err(invalid("runtime, session or key is NULL"));
        }
        if flags & !PADDING != 0 {
            return Err(invalid("flags has bits that this library does not know"));
        }
        let padding = if flags & PADDING == 0 { Padding::None } else { Padding::Pkcs7 };
        let key = match key_len {
            0 => &[],
            // SAFETY: the program gives so many bytes that no thread changes during the call.
            _ => unsafe { slice::from_raw_parts(key.cast::<u8>(), key_len) },
        };
        // SAFETY: the program gives a string.
        let algorithm = unsafe { name(algorithm, "algorithm") }?;
        // SAFETY: `open` gave the handle away, and it is not closed during this call, so that a count may be added.
        unsafe { Arc::increment_strong_count(runtime) };
        // SAFETY: that count is this one's.
        let runtime = unsafe { Arc::from_raw(runtime) };
        let opened = Session::open(&runtime, algorithm, direction_of(direction)?, padding, key)?;
        // SAFETY: the program gives a place for a handle.
        unsafe { give(session, Arc::into_raw(Arc::new(opened))) };
        Ok(0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_session_close(session: *const Session) -> c_int {
    answer(|| {
        if !session.is_null() {
            // SAFETY: `open` gave it away, and the program gives it back once.
            drop(unsafe { Arc::from_raw(session) });
        }
        Ok(0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_iv_length(session: *const Session) -> usize {
    // SAFETY: the program gives an open session.
    unsafe { length(session, |session| session.keyed().algorithm().iv_bytes()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_tag_length(session: *const Session) -> usize {
    // SAFETY: the program gives an open session.
    unsafe { length(session, |session| session.keyed().algorithm().tag_bytes()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_output_length(session: *const Session, src_len: usize) -> usize {
    // SAFETY: the program gives an open session.
    unsafe { length(session, |session| session.keyed().output_bytes_max(src_len)) }
}

/// # Safety
///
/// Null, which has no length, or an open session.
unsafe fn length(session: *const Session, length: impl FnOnce(&Session) -> usize) -> usize {
    // SAFETY: as the caller promised.
    unsafe { session.as_ref() }.map_or(0, length)
}
