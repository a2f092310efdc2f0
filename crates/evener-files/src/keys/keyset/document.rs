//! What the bytes of a file hold: JSON or protobuf of a keyset, in clear or encrypted.

use prost::Message as _;
use zeroize::Zeroizing;

use super::json::{self, Document};
use super::proto::{self, EncryptedKeyset};
use super::wrong;
use crate::error::FormatError;
use crate::keys::text::decoded;

/// What a file holds.
pub(super) fn read(bytes: &[u8]) -> Result<Document, FormatError> {
    if let Some(json) = json_text(bytes) {
        return json::read(&json);
    }
    let clear = proto::Keyset::decode(bytes).ok().filter(|keyset| keyset.primary_key_id != 0);
    if let Some(keyset) = clear {
        return Ok(Document::Clear(keyset));
    }
    let encrypted = EncryptedKeyset::decode(bytes).ok().filter(|keyset| !keyset.encrypted_keyset.is_empty());
    encrypted
        .map(Document::Encrypted)
        .ok_or_else(|| wrong("neither JSON nor the protobuf of a keyset".into()))
}

/// The keyset in a file that is not encrypted.
pub(super) fn read_clear(bytes: &[u8]) -> Result<proto::Keyset, FormatError> {
    match read(bytes)? {
        Document::Clear(keyset) => Ok(keyset),
        Document::Encrypted(_) => {
            Err(wrong("it is encrypted (--key-encryption names the keyset that opens it)".into()))
        }
    }
}

/// The file as text where it is JSON: whatever is text and does not begin like protobuf.
pub(super) fn json_text(bytes: &[u8]) -> Option<Zeroizing<String>> {
    let is_protobuf = matches!(bytes.first(), Some(0x08 | 0x12 | 0x1A));
    if is_protobuf { None } else { decoded(bytes) }
}
