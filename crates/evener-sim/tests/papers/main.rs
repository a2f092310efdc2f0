//! The simulator against the papers' tables and against an independent reference simulation of the same models.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "says what was reached")]

mod bars;
mod claims_of_order;
mod golden;
mod learner;
mod policies;
mod port;
