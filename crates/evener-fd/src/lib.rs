//! Descriptors and files of Evener inside programs of other people, which may close any descriptor and may be forbidden to write.
//!
//! [`CheckedFd`]: a descriptor that is looked at before it is used or closed, and [`close_in_children`], which closes it in what is forked. [`may_begin`]: whether the program has entered
//! a filter of system calls meanwhile. [`may_extend_to`]: whether a file may be made so long, asked before the system answers with a signal that ends the program. [`Directories`]: the directories in which processes of one user meet, and [`open_private_file`], a file there. [`range_lock`]: locks that
//! a death drops. [`Named`]: files that the user named, to which no stranger's link leads, and
//! [`atomic_file`], files that are there whole or not at all. [`mod@text`]: paths and errors as one line. [`SystemError`]: a call of the system's that failed, with what was asked of it. [`core_time`]: what a thread has computed, also where a filter refuses to tell. [`calls_made`]: how many calls drivers made for requests.
#![allow(unsafe_code, reason = "room: descriptors by number, locks, and the limit of a file's length")]

pub mod atomic_file;
mod call_count;
mod call_filter;
mod checked_fd;
pub mod core_time;
mod ffi;
mod limit;
mod private_directory;
mod private_file;
pub mod range_lock;
mod system_error;
pub mod text;
mod user_path;

pub use call_count::{calls_made, note_call};
pub use call_filter::{may_begin, note_filters};
pub use checked_fd::{CheckedFd, KnownFd};
pub use ffi::{close, close_in_children, not_in_children};
pub use limit::may_extend_to;
pub use private_directory::{Directories, Unusable, open_private};
pub use private_file::open_private_file;
pub use system_error::SystemError;
pub use user_path::{Named, open_named};
