//! The names of `modes/` where there are no kernels: types of which no value exists, for there is no [`Level`].

use crate::Level;
pub use crate::mode::{BLOCK, Mode};

/// A key. There is none.
pub struct Key(Level);

impl Key {
    /// Never called: there is no level.
    #[must_use]
    pub fn new(level: Level) -> Self {
        Self(level)
    }

    /// Never called.
    pub fn set(&mut self, _: Mode, _: &[u8]) -> bool {
        self.0.never()
    }

    /// Never called.
    ///
    /// # Safety
    /// None is needed.
    pub unsafe fn crypt(&self, _: &mut [u8; BLOCK], _: *const u8, _: *mut u8, _: usize) {
        self.0.never::<()>();
    }

    /// Never called.
    ///
    /// # Safety
    /// None is needed.
    pub unsafe fn crypt_unit(&self, _: &[u8; BLOCK], _: *const u8, _: *mut u8, _: usize) {
        self.0.never::<()>();
    }

    /// Never called.
    ///
    /// # Safety
    /// None is needed.
    pub unsafe fn crypt_unit_at(&self, _: &mut [u8; BLOCK], _: *const u8, _: *mut u8, _: usize) {
        self.0.never::<()>();
    }

    /// Never called.
    #[must_use]
    pub fn tweak(&self, _: &[u8; BLOCK]) -> [u8; BLOCK] {
        self.0.never()
    }
}
