//! Templates: the keys that `keygen` makes, under Tink's names.

use zeroize::Zeroizing;

use super::streaming_key::{SegmentCipher, StreamingKey, TinkHash};
use crate::error::FormatError;
use crate::random::fill_random;

/// The keys that `keygen` makes, under the names of Tink's templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// Name, as in Tink.
    pub name: &'static str,
    key_bytes: u8,
    segment_bytes: u32,
    cipher: SegmentCipher,
}

impl Template {
    const fn new(name: &'static str, key_bytes: u8, segment_bytes: u32, cipher: SegmentCipher) -> Self {
        Self { name, key_bytes, segment_bytes, cipher }
    }

    /// All of them; the first is the one to take.
    pub const ALL: &[Self] = &[
        Self::new("AES256_GCM_HKDF_1MB", 32, 1 << 20, SegmentCipher::Gcm),
        Self::new("AES256_GCM_HKDF_4KB", 32, 4 << 10, SegmentCipher::Gcm),
        Self::new("AES128_GCM_HKDF_1MB", 16, 1 << 20, SegmentCipher::Gcm),
        Self::new("AES128_GCM_HKDF_4KB", 16, 4 << 10, SegmentCipher::Gcm),
        Self::new("AES256_CTR_HMAC_SHA256_1MB", 32, 1 << 20, HMAC_SHA256),
        Self::new("AES256_CTR_HMAC_SHA256_4KB", 32, 4 << 10, HMAC_SHA256),
        Self::new("AES128_CTR_HMAC_SHA256_1MB", 16, 1 << 20, HMAC_SHA256),
        Self::new("AES128_CTR_HMAC_SHA256_4KB", 16, 4 << 10, HMAC_SHA256),
    ];
}

/// The MAC of Tink's templates.
const HMAC_SHA256: SegmentCipher = SegmentCipher::CtrHmac { hash: TinkHash::Sha256, tag_bytes: 32 };

impl std::str::FromStr for Template {
    type Err = FormatError;

    /// Finds a template by its name.
    fn from_str(name: &str) -> Result<Self, FormatError> {
        Self::ALL.iter().find(|template| template.name == name).copied().ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|template| template.name).collect();
            FormatError::Unsupported(format!("template {name:?}; known are {}", known.join(", ")))
        })
    }
}

/// A new key whose id is none of some.
pub(super) fn new_key(template: Template, taken: &[u32]) -> Result<StreamingKey, FormatError> {
    let mut bytes = Zeroizing::new(vec![0; usize::from(template.key_bytes)]);
    fill_random(&mut bytes)?;
    let mut id = [0; 4];
    // Tink takes 0 for "not set".
    while u32::from_ne_bytes(id) == 0 || taken.contains(&u32::from_ne_bytes(id)) {
        fill_random(&mut id)?;
    }
    Ok(StreamingKey {
        id: u32::from_ne_bytes(id),
        segment_bytes: template.segment_bytes,
        derived_key_bytes: bytes.len(),
        hash: TinkHash::Sha256,
        cipher: template.cipher,
        bytes,
    })
}
