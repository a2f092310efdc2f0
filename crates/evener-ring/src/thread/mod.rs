//! Starts threads inside a program of others, and keeps a value for each of its threads; where memory is missing, the answer is no.

mod cancellation;
mod ffi;
#[cfg(not(any(loom, miri)))]
mod served;
mod service_thread;
#[cfg(not(any(loom, miri)))]
mod shares;
mod thread_value;

pub use cancellation::{CancellationHeld, PutAside, hold_cancellation, put_aside};
pub use ffi::Service;
#[cfg(not(any(loom, miri)))]
pub use served::Served;
pub use service_thread::{start_service, with_signals_blocked};
pub use thread_value::ThreadValue;
