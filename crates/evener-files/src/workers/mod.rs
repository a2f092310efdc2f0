//! The threads of a run take files from the walk and run what they have read to completion.

pub(crate) mod armored_source;
pub(crate) mod batch;
pub(crate) mod cbc_interleave;
pub(crate) mod existing_output;
pub(crate) mod large;
pub(crate) mod pool;
