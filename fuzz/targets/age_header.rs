#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| evener_fuzz::age_header(bytes));
