//! A value of each process in one `static`.

use std::sync::OnceLock;

use super::{Inherited, Mapping, PerProcess};

/// A value that each process makes for itself when it is first asked for, in a `static`.
///
/// There is none where the kernel cannot tell a forked child from its parent, and for the moment in which another thread makes it.
pub struct ProcessValue<T: Send + Sync + 'static>(OnceLock<Option<PerProcess<T, Mapping>>>);

impl<T: Inherited + Send + Sync + 'static> ProcessValue<T> {
    /// One that no process has asked for.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Makes its place. To be called before threads fork: a child whose parent's other thread was about it would wait for that
    /// thread, which it has not.
    pub fn prepare(&self) {
        _ = self.place();
    }

    /// Returns this process's value, which `make` makes where no thread has tried yet.
    pub fn get_or_make(&self, make: impl FnOnce() -> Option<T>) -> Option<&'static T> {
        self.place()?.get_or_make(make)
    }

    fn place(&self) -> Option<&PerProcess<T, Mapping>> {
        self.0.get_or_init(|| Mapping::wiped_by_fork(1).ok().map(PerProcess::new)).as_ref()
    }
}

impl<T: Inherited + Send + Sync + 'static> Default for ProcessValue<T> {
    fn default() -> Self {
        Self::new()
    }
}
