//! A keyset's file: JSON or protobuf, in clear or encrypted.

use prost::Message as _;
use zeroize::Zeroizing;

use super::document::{json_text, read, read_clear};
use super::encryption::KeyEncryption;
use super::json::{self, Document};
use super::proto::EncryptedKeyset;
use super::{Keyset, wrong};
use crate::error::FormatError;

/// How a keyset is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysetForm {
    /// As JSON.
    Json,
    /// As protobuf.
    Binary,
}

impl Keyset {
    /// Reads a cleartext keyset, JSON or binary.
    ///
    /// Keys that are not enabled and keys of other kinds are passed over. What stands in `bytes` is secret; no error repeats it.
    ///
    /// # Errors
    ///
    /// [`FormatError::Keyset`] with the first thing that is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        Self::checked(read_clear(bytes)?)
    }

    /// Reads an encrypted keyset, JSON or binary.
    ///
    /// # Errors
    ///
    /// As [`Keyset::parse`].
    pub fn parse_encrypted(bytes: &[u8], kek: &KeyEncryption) -> Result<Self, FormatError> {
        match read(bytes)? {
            Document::Encrypted(encrypted) => Self::checked(kek.decrypted(&encrypted.encrypted_keyset)?),
            Document::Clear(mut keyset) => {
                keyset.wipe();
                Err(wrong("it is not encrypted".into()))
            }
        }
    }

    /// Whether the file holds an encrypted keyset, and how it is written.
    ///
    /// # Errors
    ///
    /// As [`Keyset::parse`].
    pub fn form(bytes: &[u8]) -> Result<(KeysetForm, bool), FormatError> {
        let form = if json_text(bytes).is_some() { KeysetForm::Json } else { KeysetForm::Binary };
        match read(bytes)? {
            Document::Encrypted(_) => Ok((form, true)),
            Document::Clear(mut keyset) => {
                keyset.wipe();
                Ok((form, false))
            }
        }
    }

    /// The keyset in clear, all its entries, to be stored where only its owner can read it.
    #[must_use]
    pub fn written(&self, form: KeysetForm) -> Zeroizing<Vec<u8>> {
        match form {
            KeysetForm::Json => json::written(&self.entries),
            KeysetForm::Binary => Zeroizing::new(self.entries.encode_to_vec()),
        }
    }

    /// The keyset as Tink's JSON, in clear.
    #[must_use]
    pub fn to_json(&self) -> Zeroizing<Vec<u8>> {
        self.written(KeysetForm::Json)
    }

    /// The keyset encrypted.
    ///
    /// # Errors
    ///
    /// [`FormatError::Keyset`] where the key-encryption keyset's primary key is none for this.
    pub fn written_encrypted(
        &self,
        form: KeysetForm,
        kek: &KeyEncryption,
    ) -> Result<Zeroizing<Vec<u8>>, FormatError> {
        let encrypted = EncryptedKeyset {
            encrypted_keyset: kek.encrypted(&self.entries)?,
            keyset_info: Some(json::info(&self.entries)),
        };
        Ok(match form {
            KeysetForm::Json => json::written_encrypted(&encrypted),
            KeysetForm::Binary => Zeroizing::new(encrypted.encode_to_vec()),
        })
    }
}
