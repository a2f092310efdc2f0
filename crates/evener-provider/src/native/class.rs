//! Into which classes messages fall, each of which is settled by itself.

use std::sync::atomic::AtomicU32;

use evener_core::Family;

use crate::state::rows::Native;

/// What is settled by itself: a mode with one length of key, in one direction where the two are not alike.
#[derive(Clone, Copy)]
pub(crate) struct Class(usize);

impl Class {
    /// Lengths of keys: of 16, 24 and 32 bytes.
    const KEYS: usize = 3;
    const MODES: usize = 7;
    /// So many are there.
    pub(super) const COUNT: usize = Self::MODES * Self::KEYS;

    /// That of a row's messages.
    #[inline]
    pub(crate) fn of(native: &Native, encrypts: bool) -> Self {
        let mode = match (native.family, encrypts) {
            (Family::Ctr, _) => 1,
            (Family::Cbc, _) => 2,
            (Family::Ecb, true) => 3,
            (Family::Ecb, false) => 4,
            (Family::Xts, true) => 5,
            (Family::Xts, false) => 6,
            _ => 0,
        };
        let one_key = if native.family == Family::Xts { native.key_bytes / 2 } else { native.key_bytes };
        let key = (one_key / 8).saturating_sub(2).min(Self::KEYS - 1);
        Self(mode * Self::KEYS + key)
    }

    /// All of them.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    /// Its place among all.
    pub(super) fn index(self) -> usize {
        self.0
    }

    /// Its word among those of all.
    pub(super) fn word(self, words: &[AtomicU32; Self::COUNT]) -> &AtomicU32 {
        &words[self.0]
    }
}
