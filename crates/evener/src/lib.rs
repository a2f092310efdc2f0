//! Evener's runtime.
//!
//! A job enters at `submit`, waits in `queue`, is decided in `adaptive` (or by the [plan](evener_core::plan) alone), is run by a thread in
//! `worker`, waits in `queue` again for its owner, and is counted in `state/report.rs`. With a plan that never uses a module, a caller runs its
//! jobs where it stands and none of this is touched.
//!
//! A single request of a program's own thread (an OpenSSL call) enters at `request` and is decided there: it runs at once, together with
//! others, on a module, or split over several threads. No run is needed for it, and `request` uses nothing of a run.
//!
//! ```text
//! run(setup, |runtime| ...)
//!   Caller::crypt ──(cpu only)── CoreDrivers::run
//!        └──(else)── Backlog ──> CPU workers, module workers, helping callers ──> Completions ──> Caller
//!   StreamSender::submit ── Backlog ──> ... ──> Completions ──> StreamReceiver::next (in order)
//! Resident::start(setup)
//!   QueuePair::submit ── Backlog ──> ... ──> Completions ──> QueuePair::reap (as they are finished)
//! ```
//!
//! The rooms from the top down; each uses only what stands below it (`Cargo.toml` has the table, `cargo xtask tidy` checks it):
//!
//! | room | what it has |
//! |---|---|
//! | `resident.rs` | a run without a body, for threads that come as they like |
//! | `run.rs` | one run from start to end |
//! | `submit` | where a job enters: callers, ordered streams and queue pairs |
//! | `worker` | the threads that run jobs |
//! | `state` | what the threads of a run share |
//! | `adaptive` | decides which worker takes what, by cost |
//! | `queue` | where jobs wait, and where finished ones wait for their owner |
//! | `request` | single requests of foreign threads, by themselves, beside a run |
//! | `driver_factory.rs`, `setup.rs` | what a run is made of, as front ends hand it in |
//! | `cpu/` | one core's drivers |
//! | `costs` | what jobs cost: learned in a run, or measured before it |
//! | `counts_file` | counters in a mapped file, which other processes read |
//! | `core_price.rs`, `module_limits.rs`, `cancel.rs`, `clock.rs`, `cores.rs`, `lanes.rs` | leaves |
//!
//! Everything here is safe code; the queue and the doorbell are `evener-ring`'s.
//!
//! # Checking
//!
//! ```text
//! cargo test -p evener                               each job once under every policy and fault; libcrypto judges
//! RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -p evener --tests -Zbuild-std --target x86_64-unknown-linux-gnu
//! cargo run --release -p evener --example per_job    what the way through the queue costs per job
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod adaptive;
mod cancel;
mod clock;
mod core_price;
mod cores;
mod costs;
pub mod counts_file;
mod cpu;
mod driver_factory;
mod join;
pub mod lanes;
mod module_limits;
mod queue;
mod request;
mod resident;
mod run;
mod setup;
mod state;
mod submit;
mod worker;

pub use crate::counts_file as statistics;
pub use cancel::Cancel;
pub use clock::SystemClock;
pub use cores::{CoreBudget, core_budget};
pub use costs::{Costs, calibration as calibrate, overhead};
pub use cpu::CoreDrivers;
pub use driver_factory::DriverFactory;
pub use join::join_all;
pub use queue::barrier::Barrier;
pub use request::{combine, in_flight, offload, regret, split};
pub use resident::{NoQueuePair, Resident, SessionEnds};
pub use run::{NoThread, Runtime, run, try_run};
pub use setup::{ModuleSetup, Setup};
pub use state::report::{ModuleReport, Quarantine, Report, WorkerReport};
pub use submit::caller::Caller;
pub use submit::queue_pair::QueuePair;
pub use submit::stream::{StreamReceiver, StreamSender, Submitted};
pub use worker::module_worker::turns::{Turn, Turns};

pub use evener_core as core;
