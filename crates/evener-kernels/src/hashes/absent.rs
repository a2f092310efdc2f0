//! The names of `entries.rs` where there are no kernels.

use super::space::Space;
use super::{Hash, Means, Width};

/// What runs a hash: nothing does.
pub(super) struct Kernels {
    pub(super) width: Width,
    pub(super) lanes: usize,
}

impl Kernels {
    /// None.
    pub(super) fn of(_: Hash, _: Means) -> Option<Self> {
        None
    }

    /// Never called.
    pub(super) fn turn(&self, active: usize) -> (usize, usize) {
        (0, active)
    }

    /// Never called.
    ///
    /// # Safety
    /// None is needed.
    pub(super) unsafe fn run(&self, space: &mut Space, active: usize, _: usize) {
        space.imitate(active, self.lanes);
    }
}
