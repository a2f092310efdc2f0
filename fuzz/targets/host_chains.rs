#![no_main]

#[path = "../src/chains.rs"]
mod chains;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| chains::host_chains(bytes));
