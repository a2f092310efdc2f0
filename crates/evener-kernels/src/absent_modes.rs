//! The names of `modes/` where there are no kernels: types of which no value exists, for there is no [`Level`].

use std::marker::PhantomData;
use std::sync::atomic::AtomicU8;

use crate::Level;
pub use crate::mode::{BLOCK, Mode};

/// A message's text, which nothing takes.
pub struct Text<'t>(PhantomData<&'t mut [u8]>);

impl<'t> Text<'t> {
    /// Of no use: there is no key.
    #[must_use]
    pub fn in_place(_: &'t mut [u8]) -> Self {
        Self(PhantomData)
    }

    /// Of no use: there is no key.
    #[must_use]
    pub fn apart(_: &'t [u8], _: &'t mut [u8]) -> Self {
        Self(PhantomData)
    }

    /// Of no use: there is no key.
    #[must_use]
    pub fn shared(_: &'t [AtomicU8], _: &'t [AtomicU8]) -> Self {
        Self(PhantomData)
    }
}

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
    pub fn message(&self, _: &[u8; BLOCK], _: &Text<'_>) {
        self.0.never::<()>();
    }

    /// Never called.
    #[must_use]
    pub fn tweak(&self, _: &[u8; BLOCK]) -> [u8; BLOCK] {
        self.0.never()
    }
}
