//! Where a job enters: a caller waits for its burst, a stream gives its jobs back in order.

pub(crate) mod caller;
pub(crate) mod stream;
