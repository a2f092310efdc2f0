//! The start of a file of `openssl enc`, and a passphrase file. The body stands in `fuzz/src/lib.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| evener_fuzz::openssl_header(bytes));
