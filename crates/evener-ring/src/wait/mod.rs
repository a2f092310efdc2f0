//! Lets a thread sleep until another rings, without a lost wake-up.

mod doorbell;
#[cfg(not(any(loom, miri)))]
mod futex;
mod readiness;

pub use doorbell::{Doorbell, Ticket};
#[cfg(not(any(loom, miri)))]
pub use futex::{sleep_shared, wake_shared};
pub use readiness::Readiness;
