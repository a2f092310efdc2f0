//! A Tink keyset, and, where it is one, a file under it. The body stands in `fuzz/src/lib.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| evener_fuzz::keyset(bytes));
