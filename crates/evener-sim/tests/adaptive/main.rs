//! The adaptive policy against lower bounds, optima and the papers' policies; most on the costs of paper 002, table 2.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "says what was reached")]

mod arrivals;
mod bench;
mod budget;
mod contended_core;
mod faults;
mod free_core;
mod lies;
mod many_modules;
mod mixed_instructions;
mod route;
mod small;
