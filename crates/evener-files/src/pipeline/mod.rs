//! From files to files: walking, reading, working, writing, placing.
//!
//! ```text
//! process ─> Walk (names, lazily) ─> crew: each thread takes small files by the batch or spans of a large one
//!            read into slots ─> Caller::crypt ─> write to a draft ─> settle: one sync, renames, directory sync
//! process ─> pipe (stdin or stdout): read in order ─> Inlet ... Outlet ─> write in order
//! ```
//!
//! A thread runs what it has read to completion, so that data stays in its core's cache; overlap of reading,
//! working and writing comes from several threads. Memory is slots only: [`slots`].

mod armor;
mod batch;
mod beneath;
mod chain;
mod crew;
mod descent;
mod large;
mod open;
mod patient;
mod pipe;
mod place;
mod process;
mod progress;
mod read;
mod segments;
mod slots;
mod stale;
mod standing;
mod tree;

pub use process::{Options, Request, RequestError, Source, Target, Task, process};
pub use progress::{FileError, Progress, Skip, Summary};
