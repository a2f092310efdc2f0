//! Evener's file formats, and the runs that encrypt and decrypt files and trees of them.
//!
//! A run begins at [`process()`]. The `walk` finds files, `workers` take them and `segments` makes jobs of them, after a
//! [`mod@format`] and its `keys`; `output` writes, makes durable and renames. Standard input and output go through `stream`.
//!
//! ```text
//! process ─> walk (names, lazily) ─> workers: each thread takes small files by the batch or spans of a large one
//!            read into slots ─> Caller::crypt ─> write to a draft ─> settle: one sync, renames, directory sync
//! process ─> archive ─> stream: a tree as one file, packed or unpacked on the way
//! through ─> stream: any Read to any Write
//! process ─> stream (stdin or stdout): read in order ─> StreamSender ... StreamReceiver ─> write in order
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod archive;
mod armor;
pub mod error;
mod filter;
pub mod format;
mod input;
mod inspection;
mod keys;
mod mirror;
mod naming;
pub mod object;
mod output;
mod preservation;
mod random;
mod record;
mod report;
mod request;
mod run;
pub mod run_report;
mod segments;
mod stream;
pub mod sums;
mod walk;
mod workers;

pub use error::{FileError, FormatError};
pub use filter::Filter;
pub use inspection::{Inspection, Sizes, inspect};
pub use keys::{age as age_keys, keyset};
pub use naming::Naming;
pub use output::abandon_drafts;
pub use preservation::Keep;
pub use record::Trust;
pub use report::{Planned, Progress, Skip, Summary};
pub use request::{Existing, Options, Part, Request, RequestError, Source, Target, Task};
pub use run::process;
pub use stream::{is_source as is_read_from_front_to_back, through};
pub use walk::outputs;
