//! Messages, descriptors and memory of a hostile client at a live host, beside a client that must not notice. The body stands in `fuzz/src/control.rs`.

#![no_main]

#[path = "../src/control.rs"]
mod control;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| control::host_control(bytes));
