//! A request to stop, visible to all threads that share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once, seen by every clone. Jobs not yet started then fail with
/// [`JobError::Cancelled`](evener_core::JobError::Cancelled); jobs in progress finish.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks everyone to stop.
    pub fn cancel(&self) {
        // Relaxed: a flag on its own; nothing is published with it.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was requested.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for a signal handler that can set nothing else.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
