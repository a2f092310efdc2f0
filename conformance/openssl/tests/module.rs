//! What is in the finished modules.

use std::fs;

use evener_conformance_openssl::built;

/// Whether the file contains the word anywhere: in a symbol, in a text, in debug information.
fn contains(file: &str, word: &str) -> bool {
    let bytes = fs::read(built(file)).expect("it was just found");
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[test]
fn only_the_module_for_tests_has_the_emulated_driver() {
    for word in ["evener_driver_emulated", "emulated:", "PROVIDER_TEST_COUNTS"] {
        assert!(contains("libevener_provider_test.so", word), "the test looks for the wrong word: {word}");
        assert!(!contains("libevener_provider.so", word), "{word}");
    }
}
