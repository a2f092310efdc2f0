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
mod serial;
mod verification;
mod worker;

pub(crate) use pool::{TreeRun, Workers};
pub(crate) use verification::Verification;
