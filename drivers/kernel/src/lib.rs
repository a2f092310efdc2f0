//! Drivers for crypto modules that the operating system drives.
//!
//! The path of one job: `submit` copies its input into memory of the request (`requests/jobs.rs`) -> a runner, a thread of the
//! driver's own, calls the kernel and sleeps there (`pool/`; `afalg/`, `devcrypto/`) -> `poll` publishes the result. Single requests of a program's own threads go past
//! them: `requests/blocking.rs`, where such a thread sleeps in the kernel itself, and `afalg/deadline.rs`, where it may leave.
//!
//! Nothing that the kernel works on belongs to the caller: where a request never returns, its thread stands in the
//! kernel for good (not even SIGKILL ends it), and what it holds stays alive with it, while the job is redone elsewhere.
#![allow(unsafe_code, reason = "room: system calls without a safe interface, in ffi.rs files only")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod afalg;
mod devcrypto;
mod error;
mod module;
pub mod ocf;
mod pool;
mod process;
mod requests;

pub use crate::afalg::{Listed, Standing, Survey, listed, survey, try_afalg};
pub use crate::devcrypto::why_no_node;
pub use crate::error::OpenError;
pub use crate::module::{Module, ModuleName, NameError};
pub use crate::pool::chunks::next_iv;
