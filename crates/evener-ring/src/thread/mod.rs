//! Starts threads inside a program of others, and keeps a value for each of its threads; where memory is missing, the answer is no.

mod detached;
mod ffi;
mod thread_value;

pub use detached::start_detached;
pub use thread_value::ThreadValue;
