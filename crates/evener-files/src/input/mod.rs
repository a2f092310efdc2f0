//! Input is opened without following links below a directory, and read at given places or until the run is cancelled.

pub(crate) mod bytes;
pub(crate) mod descriptors;
pub(crate) mod interruptible;
pub(crate) mod place;
pub(crate) mod source_file;
