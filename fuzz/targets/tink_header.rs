//! The start of a Tink stream under a keyset of four keys. The body stands in `fuzz/src/lib.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| evener_fuzz::tink_header(bytes));
