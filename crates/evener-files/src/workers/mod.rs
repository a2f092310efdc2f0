//! The threads of a run take files from the walk and run what they have read to completion.
//!
//! So data stays in its core's cache; overlap of reading, working and writing comes from several threads.

mod armored_source;
mod batch;
mod cbc_interleave;
mod existing_output;
mod header;
mod large;
mod links;
mod pool;
mod proof;
mod queue;
mod record_check;
mod serial;
mod verification;
mod worker;

use evener::Caller;
use evener_core::Job;

pub(crate) use pool::{TreeRun, Workers};
pub(crate) use verification::Verification;

/// Threads that do one run together.
pub(crate) trait Pool: Sync {
    /// What one thread does until nothing is left.
    fn work<'m>(&self, caller: Caller<'_, 'm>, slots: Vec<Box<Job<'m>>>);
}
