//! The adaptive policy against lower bounds, optima and the papers' policies; most on the costs of paper 002, table 2.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "says what was reached")]

mod alone;
mod arrivals;
mod bench;
mod beside;
mod budget;
mod faults;
mod lies;
mod many;
mod mixing;
mod route;
mod small;
