//! Rotation: a key is added, promoted and taken out of use.
//!
//! A key's way: `add -> ENABLED -> promote -> primary`, which seals, until another one is promoted; `ENABLED <-> DISABLED` otherwise. A destroyed key
//! stays so.

use super::streaming_key::{DISABLED, ENABLED, StreamingKey};
use super::template::{Template, new_key};
use super::{Keyset, wrong};
use crate::error::FormatError;

impl Keyset {
    /// Adds a new key, enabled and not primary; returns its id.
    ///
    /// # Errors
    ///
    /// As [`Keyset::generate`].
    pub fn add(&mut self, template: Template) -> Result<u32, FormatError> {
        let taken: Vec<u32> = self.entries.key.iter().map(|entry| entry.key_id).collect();
        let key = new_key(template, &taken)?;
        let id = key.id;
        self.entries.key.push(key.entry());
        self.keys.push(key);
        Ok(id)
    }

    /// Makes an enabled key the one that seals.
    ///
    /// # Errors
    ///
    /// [`FormatError::Keyset`] where there is no such key, or it cannot seal.
    pub fn promote(&mut self, id: u32) -> Result<(), FormatError> {
        if self.entry(id)?.status != ENABLED {
            return Err(wrong(format!("key {id} is not enabled")));
        }
        let place = self.keys.iter().position(|key| key.id == id);
        let place = place.ok_or_else(|| wrong(format!("key {id} is of a kind that seals no files")))?;
        self.entries.primary_key_id = id;
        self.keys[..=place].rotate_right(1);
        Ok(())
    }

    /// Takes a key out of use or into use again.
    ///
    /// # Errors
    ///
    /// [`FormatError::Keyset`] where there is no such key, it is the primary one, or it was destroyed.
    pub fn set_enabled(&mut self, id: u32, is_enabled: bool) -> Result<(), FormatError> {
        let entry = self.entry(id)?;
        if ![ENABLED, DISABLED].contains(&entry.status) {
            return Err(wrong(format!("key {id} was destroyed")));
        }
        if id == self.entries.primary_key_id {
            return Err(wrong(format!("key {id} is the primary one: promote another first")));
        }
        let key = if is_enabled { StreamingKey::of_entry(self.entry(id)?)? } else { None };
        for entry in self.entries.key.iter_mut().filter(|entry| entry.key_id == id) {
            entry.status = if is_enabled { ENABLED } else { DISABLED };
        }
        self.keys.retain(|key| key.id != id);
        self.keys.extend(key);
        Ok(())
    }
}
