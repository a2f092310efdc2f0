//! An emulated module: real results, programmed time, faults on request.
//!
//! Path of one job: `submit` computes its result at once into memory of its own and keeps the core busy
//! until `d` is used up (`core_time.rs`); the job then waits for a unit and for `h`, while the core sleeps in
//! `poll`; `poll` publishes it. What a module costs stands in its [`Preset`] (`preset.rs`, `tables.rs`), what
//! goes wrong with it in its [`Control`] (`control.rs`). [`CostedCpu`] is the other half of an emulated
//! machine: a core that is as slow as `c` says.
//!
//! Everything here says that it is emulated ([`Profile::emulated`](evener_core::Profile)): its times are
//! programmed, so no figure of it is a speed of anything.
#![forbid(unsafe_code)]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod control;
mod core_time;
mod costed_cpu;
mod module;
mod preset;
mod tables;

pub use crate::control::{Control, Counters, Fault, When};
pub use crate::core_time::{Meter, wake_on_time};
pub use crate::costed_cpu::CostedCpu;
pub use crate::module::Emulated;
pub use crate::preset::{Preset, PresetError};
