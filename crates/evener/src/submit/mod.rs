//! Where a job enters: a caller waits for its burst, a stream gives its jobs back in order, a queue pair as they are finished.

pub(crate) mod caller;
pub(crate) mod queue_pair;
pub(crate) mod stream;
