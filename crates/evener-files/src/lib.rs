//! Evener's file formats, pipeline and trees.
//!
//! `format` says what a file is: a header and a cut into segments, each of which is a job.
#![forbid(unsafe_code)]

pub mod error;
pub mod format;
pub mod keyset;

pub use error::FormatError;
