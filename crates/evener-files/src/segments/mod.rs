//! A file becomes segments, and a segment becomes a job in a buffer of the run's memory.

pub(crate) mod buffers;
pub(crate) mod file_work;
pub(crate) mod span;
