//! Lanes of a test's in place of the library's.

use evener_core::InlineDriver;
use evener_driver_lanes::Lanes;
use evener_provider::run_lanes_by;
use evener_testing::programs::skipped;

use super::ffi::{CipherCtx, DEFAULT};
use super::{bytes, in_program};

/// Runs `body` in a program where lanes can be had, with those of `make` in their place, and with a directory for counts.
pub fn with_lanes_of(
    make: fn() -> Option<Box<dyn InlineDriver>>,
    name: &str,
    variables: &[(&str, &str)],
    body: impl FnOnce(),
) {
    if !Lanes::are_there() {
        return skipped("this processor has no kernels");
    }
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("stats").display().to_string();
    let counts = [("EVENER_COMBINE", "auto"), ("EVENER_STATISTICS_DIR", &*directory)];
    in_program(name, "", &[&counts, variables].concat(), || {
        run_lanes_by(make);
        body();
    });
}

/// Contexts of AES-128-CBC under a key: of Evener, and by default.
pub fn ours_and_judge(seed: u64) -> [CipherCtx; 2] {
    ["evener", "default"].map(|provider| {
        let cipher = DEFAULT.cipher("AES-128-CBC", &format!("provider={provider}")).unwrap();
        let context = CipherCtx::new();
        assert!(context.init(Some(&cipher), Some(&bytes(seed, 16)), Some(&bytes(seed, 16)), Some(true)));
        context
    })
}
