//! A thread that reads results for a caller who may leave: it alone stands in the kernel, with memory of its own.
//!
//! `fill -> read -> (asked) -> the thread: send, read -> (answered) -> read`. One caller at a time has a reader. A caller whose time is
//! over leaves: the thread has socket, memory and key then, gives them up when it comes back from the kernel, and ends (`slot.rs`).

mod slot;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use evener_core::Nanos;
use evener_fd::CheckedFd;

use self::slot::{Parcel, Slot, Stage};
use super::transform::{Attempt, Transform};
use crate::pool::key_cache::Entry;
use crate::process::served::Served;

/// A thread, and who has it.
pub(super) struct Reader {
    slot: Served<Slot>,
    /// `None` once the caller left.
    parcel: Option<Box<Parcel>>,
}

/// What a thread is to read.
pub(super) struct Read {
    pub(super) socket: CheckedFd,
    /// Until it is closed, the socket needs its transform.
    pub(super) key: Arc<Entry<Transform>>,
    pub(super) bytes: usize,
    /// The IV with which the thread hands the front of the space to the kernel before; `None` where the caller did that.
    pub(super) sends: Option<[u8; 16]>,
}

/// A result that is there.
pub(super) struct Answered<'r> {
    pub(super) read: Read,
    /// Or what was to become it.
    pub(super) space: &'r mut [u8],
    pub(super) done: Result<(), Attempt>,
}

impl Reader {
    /// Starts a thread.
    pub(super) fn start(stuck: &Arc<AtomicUsize>) -> io::Result<Self> {
        let slot = Served::new(Slot::new(Arc::clone(stuck)));
        slot.start(STACK_BYTES)?;
        Ok(Self { slot, parcel: Some(Box::default()) })
    }

    /// Puts what the thread is to send into its space.
    pub(super) fn fill(&mut self, text: &[u8]) {
        if let Some(parcel) = &mut self.parcel {
            parcel.make_space(text.len());
            parcel.space[..text.len()].copy_from_slice(text);
        }
    }

    /// Has the thread read, and waits for it for so long, at most twice. `None` where the time is over: the reader is of no use any more.
    pub(super) fn read(&mut self, read: Read, timeout: Duration) -> Option<Answered<'_>> {
        let (mut parcel, bytes) = (self.parcel.take()?, read.bytes);
        parcel.make_space(bytes);
        parcel.read = Some(read);
        let parcel = self.parcel.insert(self.slot.request(parcel, timeout)?);
        let done = parcel.failed.take().map_or(Ok(()), Err);
        Some(Answered { read: parcel.read.take()?, space: &mut parcel.space[..bytes], done })
    }

    /// Its thread's clock.
    pub(super) fn clock(&self) -> Clock {
        Clock(self.slot.clone())
    }
}

/// The clock of a reader's thread.
pub(super) struct Clock(Served<Slot>);

impl Clock {
    /// Whether the thread is there, or about to come.
    pub(super) fn is_alive(&self) -> bool {
        !self.0.is_over()
    }

    /// Core time that the thread has used so far; nothing where it has ended.
    pub(super) fn time(&self) -> Nanos {
        let time = self.0.clock().and_then(|clock| clock.now().ok());
        let time = time.map(Duration::from).unwrap_or_default();
        Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// It sends and reads, and nothing else.
const STACK_BYTES: usize = 128 << 10;

impl Drop for Reader {
    fn drop(&mut self) {
        // In a child the thread is not there, and may have stopped with the lock held.
        if !self.slot.is_of_this_process() {
            return;
        }
        let mut stage = self.slot.stage();
        if matches!(*stage, Stage::Idle) {
            *stage = Stage::Over;
            drop(stage);
            self.slot.asked.ring_one();
        }
    }
}

#[cfg(test)]
mod tests;
