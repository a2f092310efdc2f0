//! Workers that are held before a measurement: none claims, and all stand at the barrier or sleep.

use super::Backlog;

impl Backlog<'_> {
    /// Stops workers before their next claim; they wait busily, as at a barrier. For measuring.
    pub(crate) fn hold(&self) {
        self.barrier.hold();
        self.work.ring_all();
        self.worker_queues.iter().for_each(|queue| queue.work.ring_all());
        if let Some(queues) = self.class_queues.as_ref().filter(|queues| queues.modules_matter()) {
            queues.modules.ring_all();
        }
    }

    /// Whether all workers stand at the barrier.
    pub(crate) fn all_stand(&self) -> bool {
        self.barrier.all_stand()
    }

    /// Waits until the workers that stand at the barrier stand on different cores, or gives up.
    pub(crate) fn spread(&self) -> bool {
        self.barrier.spread()
    }

    /// Opens the barrier.
    pub(crate) fn release(&self) {
        self.barrier.release();
        let is_given = || self.worker_queues.iter().any(|queue| !queue.dealt.is_empty());
        if let Some(queues) =
            self.class_queues.as_ref().filter(|queues| queues.modules_matter() || is_given())
        {
            queues.modules.ring_all();
        }
    }

    /// Whether workers are to stop before their next claim. The end of the run lets them go too.
    pub(crate) fn is_held(&self) -> bool {
        self.barrier.is_held() && !self.is_closed()
    }

    /// Where the worker numbered `worker` waits while workers are held.
    pub(crate) fn stop_at_barrier(&self, worker: usize) {
        self.barrier.stop(worker, || self.is_closed());
    }

    /// The worker numbered `worker` ended: the barrier does not wait for it.
    pub(crate) fn leave(&self, worker: usize) {
        self.barrier.leave(worker);
    }
}
