#![no_main]

#[path = "../src/arbiter.rs"]
mod arbiter;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| arbiter::arbiter_words(bytes));
