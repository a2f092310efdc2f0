//! How a program was started, and how it ends by a signal.
//!
//! [`was_closed`], [`was_ignored`]: what the program found when it was started, looked at before Rust's runtime changes it.
//! [`Caught`]: the signals that ask a program to end are noted, and the program cleans up. [`end_by`]: it ends by one, so that a shell sees which.
//! [`duplicate`]: a descriptor that the user named by its number.
#![allow(unsafe_code, reason = "room: signal handlers, what runs before `main`, descriptors by number")]

mod descriptor;
mod ending_signals;
mod ffi;

pub use descriptor::duplicate;
pub use ending_signals::{Caught, end_by};
pub use ffi::{was_closed, was_ignored};
