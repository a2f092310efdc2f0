#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| evener_fuzz::openssl_header(bytes));
