//! The names of `lanes/` where there are no kernels: types of which no value exists, for there is no [`Level`].

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use crate::Level;
pub use crate::mode::BLOCK;

/// A key. There is none.
pub struct Key(Level);

impl Key {
    /// Never called: there is no level.
    #[must_use]
    pub fn new(level: Level, _: &[u8]) -> Option<Arc<Self>> {
        Some(Arc::new(Self(level)))
    }
}

/// A message, which nothing takes.
pub struct Message<'m>(PhantomData<&'m mut [u8]>);

impl<'m> Message<'m> {
    /// Longest message in bytes.
    pub const BYTES_MAX: usize = 0;

    /// Of no use: there is no key.
    #[must_use]
    pub fn in_place(_: usize, _: &'m [u8; BLOCK], _: &'m mut [u8], _: usize) -> Self {
        Self(PhantomData)
    }

    /// Of no use: there is no key.
    #[must_use]
    pub fn apart(_: usize, _: &'m [u8; BLOCK], _: &'m [u8], _: &'m mut [u8]) -> Self {
        Self(PhantomData)
    }

    /// Of no use: there is no key.
    #[must_use]
    pub fn shared(_: usize, _: &'m [u8; BLOCK], _: &'m [AtomicU8], _: &'m [AtomicU8]) -> Self {
        Self(PhantomData)
    }

    /// Of no use: there is no key.
    #[must_use]
    pub fn ending_with(self, _: [u8; BLOCK]) -> Self {
        self
    }
}

/// Lanes. There are none.
pub struct Cbc(Level);

impl Cbc {
    /// Never called: there is no level.
    #[must_use]
    pub fn new(level: Level) -> Self {
        Self(level)
    }

    /// Never called.
    #[must_use]
    pub fn lanes(level: Level) -> u32 {
        level.never()
    }

    /// Never called.
    pub fn encrypt(&mut self, _: &[Arc<Key>], _: &mut [Message<'_>]) {
        self.0.never::<()>();
    }

    /// Never called.
    pub fn forget(&mut self) {
        self.0.never::<()>();
    }
}
