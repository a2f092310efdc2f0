//! Names of modules in the segment: each program that names a module alike finds the same lines of it.
//!
//! [`Shared::module`]: found by hash and first bytes -> else, with the lock of names, a place that has no name -> else that of a module at which no process has or wants a permit, the one that was looked up
//! longest ago. Who knows the old one sees by [`Shared::is_called`] that it is another's.

use std::sync::PoisonError;

use super::{Shared, anchor};
use crate::costs;
use crate::gate::Gate;
use crate::layout::{Identity, ModuleCount, NAME_BYTES};
use crate::world::{World as _, elapsed_ms, millis};

impl Shared {
    /// Finds the module of this name, or gives it a place in the segment: one that has no name, else the one of those that are unused
    /// which was looked up longest ago.
    pub(crate) fn module(&self, name: &str, capacity: u32) -> Option<usize> {
        let found = self.find_or_name(name, capacity)?;
        self.store(self.shape.identity(found, Identity::LookedUp), millis(self.now()));
        Some(found)
    }

    fn find_or_name(&self, name: &str, capacity: u32) -> Option<usize> {
        if let Some(module) = self.find(name) {
            return Some(module);
        }
        let file = self.anchor.checked().ok()?;
        // The lock on the file is the whole process's.
        let _mine = self.naming.lock().unwrap_or_else(PoisonError::into_inner);
        anchor::with_lock(file, anchor::NAMING, || {
            self.find(name).or_else(|| {
                let unnamed = (0..self.shape.modules()).find(|module| !self.is_named(*module));
                let module = unnamed.or_else(|| self.unused_longest())?;
                self.name(module, name, capacity);
                Some(module)
            })
        })
        .flatten()
    }

    fn is_named(&self, module: usize) -> bool {
        self.load(self.shape.identity(module, Identity::State)) == 1
    }

    /// The module that was looked up longest ago, of those at which no process has or wants a permit. A process that knows it by its old name
    /// sees at its next request that it has another ([`Self::is_called`]); one that asks at this moment has a permit of the new one, which is
    /// given back as any other.
    fn unused_longest(&self) -> Option<usize> {
        let now = self.now();
        let is_unused =
            |module: &usize| Gate::named(self, &self.shape, *module).is_none_or(|gate| gate.is_unused());
        let age =
            |module: &usize| elapsed_ms(self.load(self.shape.identity(*module, Identity::LookedUp)), now);
        (0..self.shape.modules()).filter(is_unused).max_by_key(age)
    }

    /// Whether a module still has the name that has these words ([`name_hash`]).
    #[inline]
    pub(crate) fn is_called(&self, module: usize, hash: [u32; 2]) -> bool {
        let at = self.shape.identity(module, Identity::Hash);
        [self.load(at), self.load(at + 1)] == hash
    }

    fn find(&self, name: &str) -> Option<usize> {
        let (hash, text) = name_words(name);
        (0..self.shape.modules()).find(|module| {
            let word = |word: Identity, step: usize| self.load(self.shape.identity(*module, word) + step);
            self.is_named(*module)
                && hash.iter().enumerate().all(|(step, part)| word(Identity::Hash, step) == *part)
                && text.iter().enumerate().all(|(step, part)| word(Identity::Name, step) == *part)
        })
    }

    fn name(&self, module: usize, name: &str, capacity: u32) {
        let (hash, text) = name_words(name);
        let at = |word: Identity| self.shape.identity(module, word);
        self.store(at(Identity::State), 0);
        // What was counted and learned of another module is not this one's.
        ModuleCount::ALL.iter().for_each(|count| {
            let word = self.shape.count(module, *count);
            [word, word + 1].into_iter().for_each(|word| self.store(word, 0));
        });
        costs::clear(self, &self.shape, module);
        hash.iter().enumerate().for_each(|(step, part)| self.store(at(Identity::Hash) + step, *part));
        text.iter().enumerate().for_each(|(step, part)| self.store(at(Identity::Name) + step, *part));
        self.store(at(Identity::Capacity), capacity.max(1));
        self.store(at(Identity::State), 1);
    }

    /// Permits of a module.
    pub(crate) fn capacity(&self, module: usize) -> usize {
        let capacity = self.load(self.shape.identity(module, Identity::Capacity)) as usize;
        capacity.clamp(1, self.shape.permits())
    }

    /// The name of a module as far as the segment keeps it; none where it has none.
    pub(crate) fn name_of(&self, module: usize) -> Option<String> {
        let first = self.shape.identity(module, Identity::Name);
        let bytes: Vec<u8> =
            (0..NAME_BYTES / 4).flat_map(|step| self.load(first + step).to_ne_bytes()).collect();
        self.is_named(module).then(|| text_of(&bytes))
    }
}

/// A name as words: its hash, and its first bytes.
fn name_words(name: &str) -> ([u32; 2], [u32; NAME_BYTES / 4]) {
    let mut text = [0; NAME_BYTES / 4];
    for (place, part) in text.iter_mut().zip(name.as_bytes().chunks(4)) {
        let mut bytes = [0; 4];
        bytes[..part.len()].copy_from_slice(part);
        *place = u32::from_ne_bytes(bytes);
    }
    (name_hash(name), text)
}

/// What tells a name from others that begin alike (FNV-1a).
pub(crate) fn name_hash(name: &str) -> [u32; 2] {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325, fold);
    [hash, hash >> 32].map(|part| u32::try_from(part & u64::from(u32::MAX)).unwrap_or_default())
}

/// Bytes up to the first zero, for a terminal: what is no letter, digit or sign is a question mark.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let plain =
        |sign: char| if sign.is_control() || sign == char::REPLACEMENT_CHARACTER { '?' } else { sign };
    String::from_utf8_lossy(&bytes[..end]).chars().map(plain).collect()
}
