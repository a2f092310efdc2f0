//! Holds what the threads of a host share: its clients with their memory, sessions and rings, and what was counted.

pub(crate) mod client;
pub(crate) mod closer;
pub(crate) mod faults;
pub(crate) mod host_state;
pub(crate) mod memory;
pub(crate) mod report;
pub(crate) mod ring;
pub(crate) mod sessions;
pub(crate) mod shard;
pub(crate) mod users;
