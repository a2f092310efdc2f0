//! Drives a device in the runtime's words: jobs of a run, which wait for a thread of the pool, and single requests of threads that wait themselves.

pub(crate) mod blocking;
pub(crate) mod jobs;
