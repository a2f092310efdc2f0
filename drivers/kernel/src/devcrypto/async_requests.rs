//! Chunks of one request that are left with a node side by side: `CIOCASYNCCRYPT`, `CIOCASYNCFETCH`.
//!
//! `leave chunk after chunk -> fetch the oldest -> sleep (poll) where none is finished -> leave more`. The IV of each chunk must be known
//! before the one in front of it is done, so CBC encryption goes its way one after the other, as what fits one chunk does.
//!
//! Nothing is given up while a chunk is out, for the node writes to its memory; where a signal makes it unknown what is out, that
//! memory is never freed.

use std::mem;

use evener_core::BLOCK_BYTES;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};

use super::ffi::{Back, LentMemory};
use super::{CHUNK_BYTES, OpenSession};
use crate::pool::chunks::next_iv;
use crate::pool::device::{Failure, Spec, Task};

/// The right to the queue of a descriptor.
#[derive(Debug)]
pub(super) struct Queue;

/// Chunks that are out at once: what cryptodev-linux has space for without asking for more.
const OUT_MAX: usize = 16;

/// Works on a text in chunks; `None` where it is not one for this, and untouched.
pub(super) fn side_by_side(key: &OpenSession, op: u16, task: &mut Task) -> Option<Result<(), Failure>> {
    let is_known =
        next_iv(task.spec.algorithm.family(), &task.iv, &[0; BLOCK_BYTES], task.spec.direction).is_some();
    if task.text_bytes <= CHUNK_BYTES || !is_known {
        return None;
    }
    // A thread that has it now is not waited for.
    let mut queue = key.queue.try_lock().ok()?;
    queue.as_ref()?;
    let mut lent = LentMemory::new(&key.node, mem::take(&mut task.space));
    let done =
        Chunks { key, op, spec: task.spec, iv: task.iv, start: 0, end: task.text_bytes }.run(&mut lent);
    match lent.take() {
        Some(space) => task.space = space,
        None => *queue = None,
    }
    Some(done)
}

/// What of a text is not left yet.
struct Chunks<'k> {
    key: &'k OpenSession,
    op: u16,
    spec: Spec,
    /// Of the next chunk.
    iv: [u8; BLOCK_BYTES],
    start: usize,
    end: usize,
}

impl Chunks<'_> {
    /// The first failure, once all that was left is back.
    fn run(mut self, lent: &mut LentMemory<'_>) -> Result<(), Failure> {
        let mut done = Ok(());
        while self.start < self.end || lent.out() > 0 {
            let mut is_full = false;
            while !is_full && self.start < self.end && lent.out() < OUT_MAX {
                match self.submit(lent) {
                    Err(Failure::Errno(libc::EBUSY)) => is_full = true,
                    Err(failure) => self.give_up(&mut done, failure),
                    Ok(()) => {}
                }
            }
            if lent.out() > 0 {
                match lent.fetch()? {
                    Back::Done => {}
                    Back::Failed(errno) => {
                        self.give_up(&mut done, Failure::of(Errno::from_raw_os_error(errno)));
                    }
                    Back::NotYet => self.sleep(PollFlags::IN)?,
                }
            } else if is_full {
                // Others have filled the node.
                self.sleep(PollFlags::OUT)?;
            }
        }
        done
    }

    fn submit(&mut self, lent: &mut LentMemory<'_>) -> Result<(), Failure> {
        let bytes = CHUNK_BYTES.min(self.end - self.start);
        let Spec { algorithm, direction } = self.spec;
        let next = next_iv(algorithm.family(), &self.iv, &lent.rest()[..bytes], direction);
        let iv = &self.iv[..algorithm.iv_bytes()];
        lent.submit(self.key.number, self.op, iv, self.start..self.start + bytes)?;
        self.start += bytes;
        self.iv = next.unwrap_or(self.iv);
        Ok(())
    }

    /// Leaves no more.
    fn give_up(&mut self, done: &mut Result<(), Failure>, failure: Failure) {
        self.start = self.end;
        *done = done.and(Err(failure));
    }

    fn sleep(&self, until: PollFlags) -> Result<(), Failure> {
        let node = self.key.node.checked()?;
        let mut polled = [PollFd::new(&node, until)];
        retry_on_intr(|| poll(&mut polled, None)).map(drop).map_err(Failure::of)
    }
}
