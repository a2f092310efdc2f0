//! The names of `gcm/` where there are no kernels: types of which no value exists, for there is no [`Level`].

use crate::Level;

/// A key. There is none.
pub struct Key(Level);

/// Whole blocks of a message. There are none.
pub struct Stretch(Level);

impl Stretch {
    /// Never called.
    ///
    /// # Safety
    /// None is needed.
    pub unsafe fn crypt<const ENCRYPTS: bool>(&mut self, _: &Key, _: *const u8, _: *mut u8, _: usize) {
        self.0.never::<()>();
    }
}

/// A message on its way. There is none.
#[derive(Clone)]
pub struct Message(Level);

impl Key {
    /// Never called: there is no level.
    #[must_use]
    pub fn new(level: Level) -> Self {
        Self(level)
    }

    /// Never called.
    pub fn set(&mut self, _: &[u8]) -> bool {
        self.0.never()
    }
}

impl Message {
    /// Never called.
    #[must_use]
    pub fn new(key: &mut Key, _: &[u8]) -> Self {
        key.0.never()
    }

    /// Never called.
    ///
    /// # Panics
    /// Always.
    #[must_use]
    pub fn without_nonce() -> Self {
        unreachable!("there is no key, and so no message")
    }

    /// Never called.
    pub fn aad(&mut self, _: &mut Key, _: &[u8]) {
        self.0.never::<()>();
    }

    /// Never called.
    pub fn encrypt(&mut self, _: &mut Key, _: &mut [u8]) {
        self.0.never::<()>();
    }

    /// Never called.
    pub fn encrypt_to(&mut self, _: &mut Key, _: &[u8], _: &mut [u8]) {
        self.0.never::<()>();
    }

    /// Never called.
    pub fn decrypt_to(&mut self, _: &mut Key, _: &[u8], _: &mut [u8]) {
        self.0.never::<()>();
    }

    /// Never called.
    pub fn decrypt(&mut self, _: &mut Key, _: &mut [u8]) {
        self.0.never::<()>();
    }

    /// Never called.
    ///
    /// # Safety
    /// None is needed.
    pub unsafe fn crypt<const ENCRYPTS: bool>(&mut self, _: &mut Key, _: *const u8, _: *mut u8, _: usize) {
        self.0.never::<()>();
    }

    /// Never called.
    pub fn begin_parts(&mut self, _: &mut Key) -> bool {
        self.0.never()
    }

    /// Never called.
    #[must_use]
    pub fn stretch(&self, _: usize) -> Stretch {
        self.0.never()
    }

    /// Never called.
    pub fn join(&mut self, _: &Key, _: &Stretch) {
        self.0.never::<()>();
    }

    /// Never called.
    #[must_use]
    pub fn aad_bytes(&self) -> u64 {
        self.0.never()
    }

    /// Never called.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        self.0.never()
    }

    /// Never called.
    #[must_use]
    pub fn tag(&mut self, _: &Key) -> [u8; 16] {
        self.0.never()
    }
}
