//! What can be seen of a file without a key.

use super::{age, openssl_enc};
use crate::error::FormatError;
use crate::format::segmentation::Cut;
use crate::keys::age::header::NONCE_BYTES;

/// How a file looks from outside; lengths in bytes.
pub(crate) struct HeaderView {
    pub(crate) version: String,
    pub(crate) postquantum: &'static str,
    pub(crate) kinds: Vec<String>,
    pub(crate) header: u64,
    /// The shortest plaintext that it may hold, and the padding that it has then.
    pub(crate) shortest: (u64, u64),
    /// The longest, likewise.
    pub(crate) longest: (u64, u64),
}

/// Bytes of a file that are looked at most: as far as the header of an age file may reach.
pub(crate) const HEADER_START_BYTES_MAX: usize = age::HEADER_BYTES_MAX + 16;

/// Recognizes a file of `bytes` by its start.
pub(crate) fn outside(start: &[u8], bytes: u64) -> Result<HeaderView, FormatError> {
    match start.first() {
        Some(b'a') => of_age(start, bytes),
        Some(b'S') if start.starts_with(openssl_enc::MAGIC) => of_openssl(bytes),
        Some(24 | 40) => of_tink(start[0], bytes),
        _ => Err(FormatError::Header {
            format: "age, Tink or openssl enc",
            fact: "it starts like none of them",
        }),
    }
}

fn of_age(start: &[u8], bytes: u64) -> Result<HeaderView, FormatError> {
    let (header_bytes, kinds) = age::kinds(start)?;
    let cut = age::cut((header_bytes + NONCE_BYTES) as u64);
    let payload = cut.of_cipher(bytes)?.plain_bytes();
    Ok(HeaderView {
        version: "age-encryption.org/v1".into(),
        postquantum: age::is_postquantum(&kinds),
        kinds,
        header: header_bytes as u64,
        shortest: (payload, 0),
        longest: (payload, 0),
    })
}

fn of_openssl(bytes: u64) -> Result<HeaderView, FormatError> {
    let header = openssl_enc::HEADER_BYTES as u64;
    let text = bytes.checked_sub(header);
    let text = text.ok_or(FormatError::Truncated { cipher_bytes: bytes, place: "header" })?;
    // The cipher is not seen: blocks of 16 bytes (AES-CBC), of 8, or none; of the last nothing is padding.
    let (shortest, longest) = match text {
        1.. if text % 16 == 0 => ((text - 16, 16), (text - 1, 1)),
        1.. if text % 8 == 0 => ((text - 8, 8), (text, 0)),
        _ => ((text, 0), (text, 0)),
    };
    Ok(HeaderView {
        // Whether the key was made by PBKDF2, by how many rounds and with which digest is not seen.
        version: "openssl enc".into(),
        postquantum: "yes",
        kinds: vec!["passphrase".into()],
        header,
        shortest,
        longest,
    })
}

/// Segments and tags have any length that the key says: the more there are, the more tags.
fn of_tink(header_bytes: u8, bytes: u64) -> Result<HeaderView, FormatError> {
    let header = u64::from(header_bytes);
    let cut = |(segment, tag): (u64, u64)| {
        let growth = super::Growth::Tag { empty_last_is_read: true };
        Cut::new(header, segment - header - tag, segment - tag, growth).with_tag_bytes(tag)
    };
    let extremes =
        [(TINK_SEGMENT_BYTES_MIN, TINK_TAG_BYTES_MAX), (TINK_SEGMENT_BYTES_MAX, TINK_TAG_BYTES_MIN)];
    let [short, long] = extremes.map(|extreme| cut(extreme).of_cipher(bytes));
    let (longest, shortest) = (long?.plain_bytes(), short.map_or(0, |layout| layout.plain_bytes()));
    Ok(HeaderView {
        version: "tink streaming AEAD".into(),
        postquantum: "yes",
        kinds: vec![match header_bytes {
            24 => "AES128_GCM_HKDF or AES128_CTR_HMAC".into(),
            _ => "AES256_GCM_HKDF or AES256_CTR_HMAC".into(),
        }],
        header,
        shortest: (shortest.min(longest), 0),
        longest: (longest, 0),
    })
}

/// Segments of Tink's templates, with their tags: 4 KiB and 1 MiB.
const TINK_SEGMENT_BYTES_MIN: u64 = 4 << 10;
const TINK_SEGMENT_BYTES_MAX: u64 = 1 << 20;
/// Tags of AES-CTR-HMAC as Tink allows them; those of AES-GCM have 16 bytes.
const TINK_TAG_BYTES_MIN: u64 = 10;
const TINK_TAG_BYTES_MAX: u64 = 64;
