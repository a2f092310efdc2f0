//! Tink keysets of streaming keys: what `tinkey` and Tink's libraries read and write, as JSON or binary, in clear or encrypted.
//!
//! Path of a parse: bytes (`file.rs`, `document.rs`) -> JSON (`json.rs`) or protobuf (`proto.rs`), decrypted where that is needed (`encryption.rs`) -> entries ->
//! the enabled keys that files are sealed with (`streaming_key.rs`), checked. Entries of other kinds are kept and left aside. Keys are made from
//! templates (`template.rs`) and change places by rotation (`rotation.rs`).

mod document;
mod encryption;
mod file;
mod json;
mod proto;
mod rotation;
mod streaming_key;
mod template;

use self::proto::name_of;
use self::streaming_key::ENABLED;
use self::template::new_key;
use crate::error::FormatError;

pub use self::encryption::KeyEncryption;
pub use self::file::KeysetForm;
pub use self::streaming_key::{SegmentCipher, StreamingKey, TinkHash};
pub use self::template::Template;

/// One entry of a keyset, as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// Its name in the keyset.
    pub id: u32,
    /// `ENABLED`, `DISABLED`, `DESTROYED`.
    pub status: &'static str,
    /// The kind of key, without the path before it.
    pub kind: String,
    /// Whether new files are sealed with it.
    pub is_primary: bool,
    /// Whether files can be opened with it, if it is enabled.
    pub is_usable: bool,
}

/// A keyset: all entries, and the enabled keys among them that files are sealed with.
pub struct Keyset {
    entries: proto::Keyset,
    /// The primary one first, if it is among them.
    keys: Vec<StreamingKey>,
}

impl Drop for Keyset {
    fn drop(&mut self) {
        self.entries.wipe();
    }
}

impl Keyset {
    /// A keyset of one new key.
    ///
    /// # Errors
    ///
    /// [`FormatError::Library`] where the kernel gives no random bytes.
    pub fn generate(template: Template) -> Result<Self, FormatError> {
        let key = new_key(template, &[])?;
        let entries = proto::Keyset { primary_key_id: key.id, key: vec![key.entry()] };
        Ok(Self { entries, keys: vec![key] })
    }

    fn checked(entries: proto::Keyset) -> Result<Self, FormatError> {
        let mut keyset = Self { entries, keys: Vec::new() };
        keyset.check()?;
        let enabled = keyset.entries.key.iter().filter(|entry| entry.status == ENABLED);
        let keys = enabled.filter_map(|entry| StreamingKey::of_entry(entry).transpose());
        keyset.keys = keys.collect::<Result<_, _>>()?;
        let primary_id = keyset.entries.primary_key_id;
        if let Some(place) = keyset.keys.iter().position(|key| key.id == primary_id) {
            keyset.keys[..=place].rotate_right(1);
        }
        if keyset.keys.is_empty() {
            return Err(keyset.no_usable_key());
        }
        Ok(keyset)
    }

    fn check(&self) -> Result<(), FormatError> {
        let mut ids: Vec<u32> = self.entries.key.iter().map(|entry| entry.key_id).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(format!("key id {} stands there twice", pair[0])));
        }
        let primary_id = self.entries.primary_key_id;
        match self.entries.key.iter().find(|entry| entry.key_id == primary_id) {
            _ if ids.is_empty() => Err(wrong("it holds no keys".into())),
            None => Err(wrong(format!("the primary key {primary_id} is not among its keys"))),
            Some(primary) if primary.status != ENABLED => {
                Err(wrong(format!("the primary key {primary_id} is not enabled")))
            }
            Some(_) => Ok(()),
        }
    }

    fn no_usable_key(&self) -> FormatError {
        let primary = self.rows().into_iter().find(|row| row.is_primary);
        let primary =
            primary.map_or_else(String::new, |row| format!("key {} is of type {:?}", row.id, row.kind));
        wrong(format!("{primary}, not an AES-GCM-HKDF or AES-CTR-HMAC streaming key, and there is no other"))
    }

    /// The key that seals.
    ///
    /// # Errors
    ///
    /// [`FormatError::Keyset`] where the primary key is of another kind.
    pub fn primary(&self) -> Result<&StreamingKey, FormatError> {
        let id = self.entries.primary_key_id;
        self.keys.first().filter(|key| key.id == id).ok_or_else(|| {
            wrong(format!(
                "the primary key {id} seals no files (evener keyset promote makes another one primary)"
            ))
        })
    }

    /// The keys that open, the primary one first.
    pub fn enabled_keys(&self) -> impl Iterator<Item = &StreamingKey> {
        self.keys.iter()
    }

    /// Every entry, as it may be shown.
    #[must_use]
    pub fn rows(&self) -> Vec<KeyRow> {
        let row = |entry: &proto::Key| {
            let url = entry.key_data.as_ref().map_or("", |data| &*data.type_url);
            KeyRow {
                id: entry.key_id,
                status: name_of(proto::STATUS, entry.status),
                kind: url.rsplit('.').next().unwrap_or_default().to_owned(),
                is_primary: entry.key_id == self.entries.primary_key_id,
                is_usable: [streaming_key::GCM_TYPE_URL, streaming_key::CTR_TYPE_URL].contains(&url),
            }
        };
        self.entries.key.iter().map(row).collect()
    }

    fn entry(&self, id: u32) -> Result<&proto::Key, FormatError> {
        let entry = self.entries.key.iter().find(|entry| entry.key_id == id);
        entry.ok_or_else(|| wrong(format!("there is no key {id}")))
    }
}

fn wrong(fact: String) -> FormatError {
    FormatError::Keyset(fact)
}

#[cfg(test)]
mod tests;
