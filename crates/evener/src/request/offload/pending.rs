//! A request from when it was taken in to when its caller has what came back.

use evener_ring::Served;

use super::buffers::Buffer;
use super::request_queue::RequestQueue;

/// A request that was taken in. Where it is dropped, its result is dropped too.
#[must_use]
pub struct Pending<'d> {
    pub(super) queue: &'d Served<RequestQueue>,
    pub(super) number: u64,
    pub(super) is_over: bool,
}

impl<'d> Pending<'d> {
    /// Whether [`Pending::wait`] would return at once.
    pub fn is_over(&self) -> bool {
        self.queue.is_over(self.number)
    }

    /// Sleeps until the result is there. `None` where the module failed, or was silent for too long.
    pub fn wait(mut self) -> Option<Answer<'d>> {
        self.is_over = true;
        self.queue.wait(self.number).map(|buffer| Answer { queue: self.queue, buffer: Some(buffer) })
    }

    /// Forgets it in a child of fork, in which the queue is its parent's and may be locked for ever.
    pub fn forget(mut self) {
        self.is_over = true;
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.queue.leave(self.number);
        }
    }
}

/// What came back.
pub struct Answer<'d> {
    queue: &'d Served<RequestQueue>,
    buffer: Option<Buffer>,
}

impl Answer<'_> {
    /// As many bytes as were put in.
    pub fn output(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| buffer.output())
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.queue.give_back(buffer);
        }
    }
}
