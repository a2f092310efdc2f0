//! When a module is given up: the limits that a run's workers and single requests of foreign threads have in common.

use evener_core::Nanos;

/// Errors in a row after which a module is out of service. Assumed, not measured: 8, for a module that failed so many fails the next one, too.
pub(crate) const ERRORS_MAX: u32 = 8;

/// Times that a request may take longer than it is known to, before the module is taken for dead. Assumed, not measured: 64, because a module
/// that was slowed down tenfold is not dead.
pub(crate) const TIMES_EXPECTED: u64 = 64;

/// Least silence that counts as death, whatever a request is known to take. Assumed, not measured: 500 ms, because a machine may stand still
/// for a while.
pub(crate) const SILENCE_MIN: Nanos = Nanos::from_millis(500);
