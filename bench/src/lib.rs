//! Measuring: paper 002's experiment in memory ([`crypt`]), real files against other programs, many processes
//! at one module ([`processes`]), uploads over TLS that a browser measures ([`tls`]), and programs as they are
//! installed ([`unmodified`]).
//!
//! A *cell* is an algorithm, a direction, a layout and a size. A *contender* does a cell's jobs: OpenSSL on
//! one core, OpenSSL on all, a bare multi-buffer loop, Evener under a policy. A *visit* is one contender at
//! one cell for some 20 ms of rounds. Visits of all contenders take turns, run by run, and only ratios within
//! one run are compared, because machines drift.
#![allow(unsafe_code, reason = "room: processes that are forked, in one file")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

pub mod combine;
pub mod crypt;
mod error;
pub mod files;
pub mod medians;
pub mod plot;
pub mod processes;
pub mod programs;
pub mod tls;
pub mod unmodified;

pub use crypt::{contender, neighbours, report, workload};
pub use error::BenchError;

/// Results as JSON, for a file.
///
/// # Panics
///
/// Never: results are numbers, names and lists.
#[must_use]
pub fn to_json(results: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(results).expect("numbers, names and lists") + "\n"
}
