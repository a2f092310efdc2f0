//! Descriptor chains of a hostile client, beside a second reader of the specification. The body stands in `fuzz/src/chains.rs`.

#![no_main]

#[path = "../src/chains.rs"]
mod chains;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| chains::host_chains(bytes));
