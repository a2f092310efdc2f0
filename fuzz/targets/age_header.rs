//! The start of an age file, armored or not; an identity file; a recipients file. The body stands in `fuzz/src/lib.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| evener_fuzz::age_header(bytes));
