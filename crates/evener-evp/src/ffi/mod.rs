//! libcrypto's objects behind owned types: no pointer leaves this folder.
#![allow(unsafe_code, reason = "room: libcrypto's functions")]

pub(crate) mod cipher;
pub(crate) mod digest;
pub(crate) mod gcm;
pub(crate) mod key;

use std::ffi::c_int;
use std::ptr::NonNull;

use evener_evp_sys::{ERR_clear_error, OsslLibCtx};

use crate::Refused;

/// The library context of all calls: this process's own, with the user's configuration.
const LIBRARY: *mut OsslLibCtx = std::ptr::null_mut();

/// An object that libcrypto made; null is a refusal. What it left on its error queue is taken off.
fn owned<T>(pointer: *mut T) -> Result<NonNull<T>, Refused> {
    ERR_clear_error();
    NonNull::new(pointer).ok_or(Refused)
}

/// The answer of a function that returns 1 for success.
fn accepted(answer: c_int) -> Result<(), Refused> {
    ERR_clear_error();
    if answer == 1 { Ok(()) } else { Err(Refused) }
}

/// A length as libcrypto counts.
fn int(bytes: usize) -> Result<c_int, Refused> {
    c_int::try_from(bytes).map_err(|_| Refused)
}

/// A length that libcrypto gave.
fn len(bytes: c_int) -> usize {
    usize::try_from(bytes).unwrap_or(0)
}
