//! Words of the arbiter's segment, and what another process writes there meanwhile. The body stands in `fuzz/src/arbiter.rs`.

#![no_main]

#[path = "../src/arbiter.rs"]
mod arbiter;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| arbiter::arbiter_words(bytes));
