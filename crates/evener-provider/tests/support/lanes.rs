//! Lanes of a test's in place of the library's.

use evener_core::InlineDriver;
use evener_driver_multibuffer::Multibuffer;
use evener_provider::run_lanes_by;
use evener_testing::programs::skipped;

use super::in_program;

/// Runs `body` in a program where lanes can be had, with those of `make` in their place, and with a directory for counts.
pub fn with_lanes_of(
    make: fn() -> Option<Box<dyn InlineDriver>>,
    name: &str,
    variables: &[(&str, &str)],
    body: impl FnOnce(),
) {
    if let Err(unavailable) = Multibuffer::load() {
        return skipped(&unavailable.to_string());
    }
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("stats").display().to_string();
    let counts = [("EVENER_COMBINE", "auto"), ("EVENER_STATISTICS_DIR", &*directory)];
    in_program(name, "", &[&counts, variables].concat(), || {
        run_lanes_by(make);
        body();
    });
}
