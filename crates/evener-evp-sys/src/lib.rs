//! libcrypto as a program in C calls it: EVP's functions, and the few others that ours need.
//!
//! Declared by hand from OpenSSL 3.0's manual pages, each under the name of its page; all of it is stable interface of every 3.x.
//! A crate that uses this crate links libcrypto. That is why it stands beside `evener-ossl-sys`, which `evener.so` is built from and which
//! links nothing, and is no feature of it: cargo would turn the feature on for both where it builds both.

#![allow(unsafe_code, reason = "room: the functions of a C library")]

mod ffi;

pub use ffi::*;
