//! How many system calls drivers make for requests at modules: what a request costs besides its cipher, for programs that measure that.
//!
//! One count for the process, for a measurement has one module at work: looks at descriptors ([`crate::CheckedFd`]) and the calls that carry
//! requests and answers. How threads of a driver wake each other is not counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static MADE: AtomicU64 = AtomicU64::new(0);

/// Counts one call.
#[inline]
pub fn note_call() {
    // Relaxed: nothing else is read through it.
    MADE.fetch_add(1, Relaxed);
}

/// Returns how many calls were counted in this process.
#[must_use]
pub fn calls_made() -> u64 {
    MADE.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckedFd;

    #[test]
    fn each_look_at_a_descriptor_is_a_call() {
        let file = CheckedFd::new(std::fs::File::open("/dev/null").unwrap().into()).unwrap();
        let before = calls_made();
        (0..3).for_each(|_| assert!(file.checked().is_ok()));
        assert!(calls_made() >= before + 3, "other tests may look, too");
    }
}
