#![no_main]

#[path = "../src/control.rs"]
mod control;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| control::host_control(bytes));
