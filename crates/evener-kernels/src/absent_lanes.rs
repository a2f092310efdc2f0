//! The names of `lanes/` where there are no kernels: types of which no value exists, for there is no [`Level`].

use std::sync::Arc;

use crate::Level;
pub use crate::message::Message;
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
