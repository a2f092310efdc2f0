//! One suite for every driver, method and door of Evener.
//!
//! Path of one check: a published case or seeded noise becomes a [`JobSpec`] -> [`answers`] makes jobs of them and
//! sends them along a [`Route`] (a driver, a core's set of drivers, the runtime) -> [`Answer`]s, which the publisher's bytes or
//! libcrypto, one job at a time, judge. What is tested stands under `tests/`; here is what the tests share.
//!
//! `interop/` holds what compares files with programs of other hands.
#![allow(unsafe_code, reason = "room: a fork")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod ffi;
mod known_answers;
mod module_driver;
mod noise;
mod process;
mod random_request;
mod request;
mod route;
mod runtime;

pub use ffi::is_right_in_child;
pub use known_answers::ask_all;
pub use module_driver::{all_by, apart, by_run, in_place};
pub use noise::noise;
pub use process::Process;
pub use random_request::{kinds, session};
pub use request::{Answer, Burst, JobSpec, Layout, Route, answers};
pub use route::{Direct, OnCore, judged, libcrypto, multibuffer};
pub use runtime::{ByRuntime, Door};
