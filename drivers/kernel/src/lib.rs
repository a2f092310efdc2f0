//! Drivers for crypto modules that the operating system drives.
//!
//! The way of one job: `submit` copies its input into memory of the request (`queued.rs`) -> a runner, a thread of the
//! driver's own, calls the kernel and sleeps there (`desk.rs`; `afalg/`, `devcrypto/`) -> `poll` publishes the result. Single requests of a program's own threads go past
//! them: `called.rs`, where such a thread sleeps in the kernel itself, and `afalg/timed.rs`, where it may leave.
//!
//! Nothing that the kernel works on belongs to the caller: where a request never returns, its thread stands in the
//! kernel for good (not even SIGKILL ends it), and what it holds stays alive with it, while the job is redone elsewhere.
#![allow(unsafe_code, reason = "room: system calls without a safe interface, in ffi.rs files only")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod afalg;
mod birthplace;
mod called;
mod clock;
mod desk;
mod devcrypto;
mod device;
mod error;
mod kept;
mod keys;
mod module;
mod name;
pub mod ocf;
mod pieces;
mod queued;
#[cfg(test)]
mod sample;
mod wipe;

pub use crate::afalg::{Standing, Survey, survey};
pub use crate::devcrypto::why_no_node;
pub use crate::error::OpenError;
pub use crate::module::Module;
pub use crate::name::{ModuleName, NameError};
pub use crate::pieces::next_iv;
