//! Starts threads inside a program of others, and keeps a value for each of its threads; where memory is missing, the answer is no.

mod cancellation;
mod ffi;
mod service_thread;
mod thread_value;

pub use cancellation::{CancellationHeld, hold_cancellation};
pub use ffi::Service;
pub use service_thread::{start_detached, start_service};
pub use thread_value::ThreadValue;
