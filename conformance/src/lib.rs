//! One suite for every driver, method and way through Evener's runtime.
//!
//! Path of one check: a published case or seeded noise becomes a [`JobSpec`](evener_testing::requests::JobSpec) -> jobs are made of asks and
//! go a [`Route`](evener_testing::requests::Route) (a driver, a core's set of drivers, [the runtime](ByRuntime)) -> answers come, which the publisher's
//! bytes or libcrypto, one job at a time, judge. What is tested stands under `tests/`; here is what only this suite's tests share.
//!
//! `interop/` holds what compares files with programs of other hands.
#![forbid(unsafe_code)]

mod runtime;

pub use runtime::{ByRuntime, Door};
