//! Input is opened without following links below a directory, and read whole or up to the wish to stop.

pub(crate) mod beneath;
pub(crate) mod interruptible;
pub(crate) mod source_file;
