//! A file becomes segments, and each segment becomes a job in a buffer of the run's memory.

mod candidates;
mod file_work;
pub(crate) mod job;
mod opened;
pub(crate) mod slots;
pub(crate) mod span;

pub(crate) use candidates::{KeyTrial, START_BYTES, authenticates, choose, offset_and_len, read_header};
pub(crate) use file_work::{FileWork, input_of};
pub(crate) use opened::OpenedSegments;
