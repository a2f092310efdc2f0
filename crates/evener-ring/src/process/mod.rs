//! Shares memory and counts between processes, and keeps apart what a fork must part.

#[cfg(not(any(loom, miri)))]
mod creator;
mod inheritance;
#[cfg(not(any(loom, miri)))]
mod mapped_words;
#[cfg(not(any(loom, miri)))]
mod mapping;
#[cfg(not(any(loom, miri)))]
mod pages;
mod per_fork;
mod per_process;
#[cfg(not(any(loom, miri)))]
mod process_value;
#[cfg(not(any(loom, miri)))]
mod region;
#[cfg(not(any(loom, miri)))]
mod segment;
#[cfg(not(any(loom, miri)))]
mod wipe;
mod words;

#[cfg(not(any(loom, miri)))]
pub use creator::Creator;
pub use inheritance::Inherited;
pub(crate) use inheritance::{CountedAside, count_put_aside};
#[cfg(not(any(loom, miri)))]
pub use mapping::Mapping;
pub use per_fork::PerFork;
pub use per_process::PerProcess;
#[cfg(not(any(loom, miri)))]
pub use process_value::ProcessValue;
#[cfg(not(any(loom, miri)))]
pub(crate) use region::Shared;
#[cfg(not(any(loom, miri)))]
pub use region::{OutOfRegion, Region};
#[cfg(not(any(loom, miri)))]
pub use segment::{Refusal, Segment};
#[cfg(not(any(loom, miri)))]
pub use wipe::wipe;
pub use words::{Counter, Words, value};
