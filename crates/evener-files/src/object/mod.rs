//! Objects of others' making: sealed ones that are read at any place ([`SealedObject`]), sealed while one writes ([`SealedWriter`]), or
//! taken by many threads at once ([`ObjectWork`]); and what tells a finished one ([`mark()`]).
//!
//! All are given a [`Caller`](evener::Caller) with each call, which runs the jobs, and own their memory; what they drop is wiped. For a whole stream
//! from end to end on all cores there is [`through`](crate::through()).
//!
//! ```text
//! ReadAt ─> SealedObject::read_at: segments that hold the range, and no others ─> the last few are kept
//! SealedWriter::write ─> full segments, by the burst ─> any Write; finish ─> the last segment
//! ```

mod mark;
mod reader;
mod work;
mod writer;

use evener_core::Job;
use zeroize::Zeroizing;

pub use crate::input::bytes::ReadAt;
pub use mark::mark;
pub use reader::SealedObject;
pub use work::{ObjectWork, Slots};
pub use writer::SealedWriter;

/// Slots that own their memory, which is touched only when they are used.
fn slots<'m>(slot_bytes: u64, count: usize) -> Vec<Box<Job<'m>>> {
    let bytes = usize::try_from(slot_bytes).expect("a segment has less than 4 GiB");
    (0..count).map(|_| Job::owning(Zeroizing::new(vec![0; bytes]))).collect()
}
