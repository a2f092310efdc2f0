//! Evener's file formats, pipeline and trees.
//!
//! `format` says what a file is: a header and a cut into segments, each of which is a job.
#![forbid(unsafe_code)]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod armor;
pub mod error;
pub mod format;
mod input;
mod keys;
mod output;
mod process;
mod random;
mod report;
mod request;
mod segments;
mod stream;
mod walk;
mod workers;

pub use error::{FileError, FormatError};
pub use keys::{age as age_keys, keyset};
pub use process::process;
pub use report::{Progress, Skip, Summary};
pub use request::{Options, Request, RequestError, Source, Target, Task};
