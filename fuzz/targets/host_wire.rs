//! Each part of the wire between a host and its clients: what is accepted is written and read again. The body stands in `fuzz/src/wire.rs`.

#![no_main]

#[path = "../src/wire.rs"]
mod wire;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wire::host_wire(bytes));
