//! Descriptors and files of Evener inside programs of other people, which may close any descriptor and may be forbidden to write.
//!
//! [`CheckedFd`]: a descriptor that is looked at before it is used or closed. [`may_extend_to`]: whether a file may be made so long,
//! asked before the system answers with a signal that ends the program.
#![allow(unsafe_code, reason = "room: descriptors by number, and the limit of a file's length")]

mod checked_fd;
mod limit;

pub use checked_fd::{CheckedFd, KnownFd};
pub use limit::may_extend_to;
