//! Where jobs wait for a worker, and where finished ones wait for their owner.

pub(crate) mod backlog;
pub(crate) mod barrier;
pub(crate) mod class_queues;
pub(crate) mod completions;
pub(crate) mod ended_sessions;
pub(crate) mod ready_event;
#[cfg(test)]
pub(crate) mod test_support;
