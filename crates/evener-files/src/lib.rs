//! Evener's file formats, pipeline and trees.
//!
//! `format` says what a file is: a header and a cut into segments, each of which is a job.
#![forbid(unsafe_code)]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

pub mod age_keys;
pub mod error;
pub mod format;
pub mod keyset;
mod pipeline;

pub use error::FormatError;
pub use pipeline::{
    FileError, Options, Progress, Request, RequestError, Skip, Source, Summary, Target, Task, process,
};
