//! Memory of requests at a module: it outlives the call, so that a module that hangs holds nothing of the caller's.

use std::sync::Arc;

use evener_core::{Direction, Job, Session};
use evener_ring::wipe;
use zeroize::Zeroizing;

/// Longest request. Assumed, not measured: 1 MiB, because TLS records have 16 KiB, and a caller that waits for a longer one gains no more per byte.
pub const ROOM_BYTES_MAX: usize = 1 << 20;

/// Buffers have at least so many bytes, so that those of one record are used for the next.
const BUFFER_BYTES_MIN: usize = 32 << 10;

/// All buffers of one module together, in bytes: they are kept for the next requests. Assumed, not measured: 16 MiB,
/// sixteen of the longest.
const BYTES_MAX: usize = 16 << 20;

/// A job with memory of its own.
pub(super) struct Buffer {
    job: Box<Job<'static>>,
    bytes: usize,
}

impl Buffer {
    /// `None` where no memory is to be had: the program's request goes another way.
    fn new(bytes: usize) -> Option<Self> {
        let mut space = Vec::new();
        space.try_reserve_exact(bytes).ok()?;
        space.resize(bytes, 0);
        Some(Self { job: Job::owning(Zeroizing::new(space)), bytes })
    }

    /// What stands in it after a job that went well.
    pub(super) fn output(&self) -> &[u8] {
        self.job.output()
    }
}

/// Buffers that are free, and how many there are in all.
#[derive(Default)]
pub(super) struct BufferPool {
    spare: Vec<Buffer>,
    bytes: usize,
    /// Sizes of buffers that are at the driver, by the job's mark.
    lent: Vec<(u64, usize)>,
}

impl BufferPool {
    /// A job over a copy of `input`; `None` where all buffers are in use, or no memory is to be had.
    pub(super) fn prepare(
        &mut self,
        number: u64,
        session: &Arc<Session>,
        iv: &[u8; 16],
        input: &[u8],
    ) -> Option<Box<Job<'static>>> {
        let mut buffer = self.take(input.len())?;
        buffer.job.space_mut()[..input.len()].copy_from_slice(input);
        buffer.job.arm(Arc::clone(session), &iv[..session.algorithm().iv_bytes()], input.len());
        buffer.job.mark = number;
        self.lent.push((number, buffer.bytes));
        Some(buffer.job)
    }

    fn take(&mut self, bytes: usize) -> Option<Buffer> {
        let fits = |buffer: &Buffer| buffer.bytes >= bytes;
        let best =
            (0..self.spare.len()).filter(|&at| fits(&self.spare[at])).min_by_key(|&at| self.spare[at].bytes);
        if let Some(at) = best {
            return Some(self.spare.swap_remove(at));
        }
        let bytes = bytes.next_power_of_two().max(BUFFER_BYTES_MIN);
        if self.bytes + bytes > BYTES_MAX {
            return None;
        }
        let buffer = Buffer::new(bytes)?;
        self.bytes += bytes;
        Some(buffer)
    }

    /// The space of a job that came back from the driver.
    pub(super) fn returned(&mut self, job: Box<Job<'static>>) -> Option<Buffer> {
        let place = self.lent.iter().position(|(number, _)| *number == job.mark)?;
        let (_, bytes) = self.lent.swap_remove(place);
        // Where the module's driver never gave the memory back, the space is gone.
        let is_whole = job.output_span().len() == bytes;
        self.bytes -= if is_whole { 0 } else { bytes };
        is_whole.then_some(Buffer { job, bytes })
    }

    /// Keeps a space for the next request, with no text in clear and no key left in it.
    pub(super) fn give_back(&mut self, mut buffer: Buffer) {
        let is_sealed =
            buffer.job.session().direction() == Direction::Encrypt && !buffer.job.output().is_empty();
        if !is_sealed {
            let used = buffer.job.input_bytes();
            wipe(&mut buffer.job.space_mut()[..used]);
        }
        buffer.job.disarm();
        self.spare.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener_core::{Algorithm, Padding};

    fn session(direction: Direction) -> Arc<Session> {
        Arc::new(Session::new(Algorithm::Aes128Cbc, direction, Padding::None, &[7; 16]).unwrap())
    }

    fn used(buffers: &mut BufferPool, direction: Direction, is_done: bool) {
        let mut job = buffers.prepare(1, &session(direction), &[0; 16], &[9; 64]).unwrap();
        if is_done {
            job.done(64);
        }
        let buffer = buffers.returned(job).unwrap();
        buffers.give_back(buffer);
    }

    #[test]
    fn a_space_is_used_again_and_keeps_neither_text_in_clear_nor_key() {
        let mut buffers = BufferPool::default();
        for (direction, is_done) in
            [(Direction::Decrypt, true), (Direction::Encrypt, false), (Direction::Decrypt, false)]
        {
            used(&mut buffers, direction, is_done);
            assert!(buffers.spare[0].job.space_mut().iter().all(|&byte| byte == 0), "{direction} {is_done}");
        }
        let key = session(Direction::Encrypt);
        let job = buffers.prepare(2, &key, &[0; 16], &[9; 64]).unwrap();
        assert_eq!((Arc::strong_count(&key), buffers.bytes), (2, BUFFER_BYTES_MIN));
        let buffer = buffers.returned(job).unwrap();
        buffers.give_back(buffer);
        assert_eq!(Arc::strong_count(&key), 1);
    }

    #[test]
    fn a_space_that_a_driver_kept_is_gone_and_its_place_is_free() {
        let mut buffers = BufferPool::default();
        let mut job = buffers.prepare(1, &session(Direction::Encrypt), &[0; 16], &[9; 64]).unwrap();
        let kept = job.lend_space();
        assert!(kept.is_some() && buffers.returned(job).is_none() && buffers.bytes == 0);
    }

    #[test]
    fn spaces_do_not_grow_without_end() {
        let (mut buffers, key) = (BufferPool::default(), session(Direction::Encrypt));
        let long = vec![1; ROOM_BYTES_MAX];
        let jobs: Vec<_> =
            (0..100).map_while(|number| buffers.prepare(number, &key, &[0; 16], &long)).collect();
        assert_eq!(jobs.len(), BYTES_MAX / ROOM_BYTES_MAX);
    }
}
