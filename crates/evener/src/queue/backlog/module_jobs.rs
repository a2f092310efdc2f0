//! Jobs that are one module's: those that a caller gave it, and those that no core may do.

use evener_core::Job;

use super::Backlog;

impl<'m> Backlog<'m> {
    /// Gives a job to the module of `worker` and to no other worker, or gives it back where that has enough.
    pub(crate) fn push_to(&self, worker: usize, job: Box<Job<'m>>) -> Result<(), Box<Job<'m>>> {
        self.worker_queues[worker].dealt.push(job)?;
        self.class_queues().modules.ring_all();
        Ok(())
    }

    /// The next job that was given to the module of `worker` alone.
    pub(crate) fn pop_given(&self, worker: usize) -> Option<Box<Job<'m>>> {
        self.worker_queues[worker].dealt.pop()
    }

    /// Gives the module of `worker` a job that only a module may do, or gives it back where that has enough.
    pub(crate) fn push_module_only(&self, worker: usize, job: Box<Job<'m>>) -> Result<(), Box<Job<'m>>> {
        self.worker_queues[worker].module_only.push(job)?;
        self.doorbell_of(worker).ring_all();
        Ok(())
    }

    /// The next job that only the module of `worker` may do.
    pub(crate) fn pop_module_only(&self, worker: usize) -> Option<Box<Job<'m>>> {
        self.worker_queues[worker].module_only.pop()
    }

    /// How many of them wait there.
    pub(crate) fn module_only_count(&self, worker: usize) -> usize {
        self.worker_queues[worker].module_only.len()
    }

    /// The module at `worker` is out of service: what is bound to it is to be taken away afterwards.
    pub(crate) fn leave_service(&self, worker: usize) {
        self.worker_queues[worker].leave_service();
    }

    /// Whether the module of `worker` is out of service; to be checked again after a job was put there.
    pub(crate) fn is_out_of_service(&self, worker: usize) -> bool {
        self.worker_queues[worker].is_out_of_service()
    }
}
