//! `libevener`: bursts of jobs for programs in C, and the queue over raw memory that other languages build upon.
//!
//! The path of a burst: an array of pointers to C's jobs (`abi.rs`) -> each is looked at and becomes a job of the runtime over the memory
//! that it lends (`queue/raw.rs`) -> a caller runs it at once, or a queue pair takes it and gives it back (`queue/`) -> outcome, tag and
//! length are written into C's job, which is the program's again.
//!
//! ```text
//! evener_submit ── ffi ──> Queue::submit ──> QueuePair ──> workers ──> QueuePair ──> Queue::reap ──> evener_reap
//! evener_crypt  ── ffi ──> Queue::crypt ───> Caller (on this thread) ──────────────────┘
//! ```
//!
//! | room | what it has |
//! |---|---|
//! | `ffi/` | the functions of `include/evener.h`: pointers are taken apart, panics end here |
//! | `queue/` | jobs under way: boxes that are used again, and whose memory each is over |
//! | `session.rs` | key, algorithm and direction, as a handle that outlives its closing while jobs need it |
//! | `statistics.rs`, `explain.rs` | what was done, in numbers; what is known of costs, as text |
//! | `runtime.rs` | the threads, started with the first queue |
//! | `abi.rs` | structs and constants as C has them |
//! | `error.rs` | why a call or a job failed |
#![allow(unsafe_code, reason = "room: C's interface, and memory that a program lends")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

pub mod abi;
mod error;
mod explain;
mod ffi;
pub mod queue;
pub mod runtime;
pub mod session;
mod statistics;

pub use error::{Error, Failure};
pub use statistics::statistics;
