//! Evener's runtime.
//!
//! The way of one job: a [`Caller`] or an [`Inlet`] gives it a turn ([`home`]) -> [`backlog`] -> a CPU worker
//! ([`cpu`]) or a module worker ([`module`]) takes it as the [plan](evener_core::plan) says -> driver ->
//! Done | Failed -> back to the home it came from, where an [`Outlet`] puts it in order. With a plan that
//! never uses a module, a caller runs its jobs where it stands and none of this is touched.
//!
//! ```text
//! run(setup, |runtime| ...)
//!   Caller::crypt ──(cpu only)── CpuKit::run
//!        └──(else)── Backlog ──> CPU workers, module workers, helping callers ──> Home ──> Caller
//!   Inlet::submit ── Backlog ──> ... ──> Home ──> Outlet::next (in order)
//! ```
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
mod cpu;
mod driver_factory;
mod module_limits;
mod queue;
mod request;
mod run;
mod setup;
mod state;
pub mod statistics;
mod submit;
mod worker;

pub use cancel::Cancel;
pub use clock::SystemClock;
pub use cores::{CoreBudget, core_budget};
pub use costs::{Costs, calibration as calibrate, overhead as unseen};
pub use cpu::CpuKit;
pub use driver_factory::Machinery;
pub use queue::barrier::Barrier;
pub use request::{combine, in_flight, offload, regret, split};
pub use run::{Runtime, run};
pub use setup::{ModuleSetup, Setup};
pub use state::report::{ModuleReport, Quarantine, Report, WorkerReport};
pub use submit::caller::Caller;
pub use submit::stream::{Inlet, Outlet, Submitted};

pub use evener_core as core;
