//! What OpenSSL's core and a provider say to each other: five structs, some numbers, some function types.
//!
//! Source: `include/openssl/core.h` and `core_dispatch.h` of OpenSSL 3.0 to 4.0, which only ever add lines. The
//! way to be sure: `tests/header.rs` compiles one static assertion per number and per field against each header
//! that is installed. Nothing here is called, linked or loaded.

#![allow(unsafe_code, reason = "room: the types of C functions")]

use core::ffi::{c_char, c_int, c_uint, c_void};

mod ffi;
pub mod number;

pub use ffi::*;

/// One function of a table, `OSSL_DISPATCH`. A table ends with number 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    /// One of [`number`]'s.
    pub function_id: c_int,
    /// Cast to the type that belongs to the number.
    pub function: Option<Function>,
}

impl Dispatch {
    /// The end of a table.
    pub const END: Self = Self { function_id: 0, function: None };
}

/// One algorithm of an operation, `OSSL_ALGORITHM`. A table ends with null names.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// Names with colons between them, as `AES-128-CBC:AES128:2.16.840.1.101.3.4.1.2`.
    pub names: *const c_char,
    /// Properties, as `provider=default`.
    pub properties: *const c_char,
    /// A table of the operation's functions.
    pub implementation: *const Dispatch,
    /// A sentence for people, or null.
    pub description: *const c_char,
}

/// One parameter, `OSSL_PARAM`. A table ends with a null key.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub key: *const c_char,
    /// One of `PARAM_*`.
    pub data_type: c_uint,
    /// Where the value lies or goes to.
    pub data: *mut c_void,
    /// Space at `data` in bytes.
    pub data_size: usize,
    /// Length of what was answered, [`PARAM_UNMODIFIED`] before.
    pub return_size: usize,
}

impl Param {
    /// The end of a table.
    pub const END: Self = Self {
        key: core::ptr::null(),
        data_type: 0,
        data: core::ptr::null_mut(),
        data_size: 0,
        return_size: 0,
    };
}

/// What the core calls a provider by, `OSSL_CORE_HANDLE`. Never looked into.
#[repr(C)]
#[derive(Debug)]
pub struct CoreHandle {
    _opaque: [u8; 0],
}

/// A signed integer of any width.
pub const PARAM_INTEGER: c_uint = 1;
/// An unsigned integer of any width.
pub const PARAM_UNSIGNED_INTEGER: c_uint = 2;
/// Text, copied.
pub const PARAM_UTF8_STRING: c_uint = 4;
/// Bytes, copied.
pub const PARAM_OCTET_STRING: c_uint = 5;
/// Text, by its address.
pub const PARAM_UTF8_PTR: c_uint = 6;
/// Bytes, by their address.
pub const PARAM_OCTET_PTR: c_uint = 7;
/// `return_size` of a parameter without an answer, `OSSL_PARAM_UNMODIFIED`.
pub const PARAM_UNMODIFIED: usize = usize::MAX;
