//! Output is written under a temporary name, made durable in batches, and renamed to its final name.

pub(crate) mod atomic_output;
pub(crate) mod leftovers;
