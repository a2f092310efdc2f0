//! Threads that each call the kernel with one request and sleep there, the requests that they own, and the keys that the kernel holds.

pub(crate) mod chunks;
pub(crate) mod device;
pub(crate) mod free_list;
pub(crate) mod key_cache;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod syscall_pool;
