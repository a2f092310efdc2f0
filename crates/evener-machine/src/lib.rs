//! This machine, as programs and libraries over the runtime take it: the drivers that its cores encrypt with, the crypto modules beside them, by
//! the names that users give them, and what jobs cost on each.
//!
//! [`Machine::new`] looks once at what is there; [`Machine::load_or_measure_costs`] fetches what earlier runs learned and measures what a run
//! needs beyond it; after that every thread gets its own drivers from the machine, which is a [`DriverFactory`](evener::DriverFactory).
//!
//! ```text
//! Choice (modules by name) ─> Machine ─> drivers of cores: libcrypto, kernels of our own, the multi-buffer library
//!                               │   └──> modules: hosted, behind the kernel, emulated; shared through the arbiter
//!                               └──────> costs: the cache of this processor, a microbenchmark of what it lacks
//! ```
//!
//! Nothing here prints: what there is to say goes to an [`Observer`].
#![forbid(unsafe_code)]

pub mod cost_cache;
pub mod cpu_load;
mod error;
pub mod libraries;
mod machine;
pub mod microbench;
pub mod modules;
mod observer;
pub mod processor;
mod second_driver;
mod sharing;
pub mod state;

pub use error::MachineError;
pub use machine::{Choice, Machine, MethodCosts};
pub use observer::{Observer, Silent};
