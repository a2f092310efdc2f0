//! Streaming keys: what an entry of a keyset says, checked.

use prost::Message as _;
use zeroize::{Zeroize as _, Zeroizing};

use super::proto::{HmacParams, Key, KeyData, StreamingKey as Message, StreamingParams};
use super::wrong;
use crate::error::FormatError;

/// The kinds of keys that files are sealed with.
pub(super) const GCM_TYPE_URL: &str = "type.googleapis.com/google.crypto.tink.AesGcmHkdfStreamingKey";
pub(super) const CTR_TYPE_URL: &str = "type.googleapis.com/google.crypto.tink.AesCtrHmacStreamingKey";

/// A hash inside HKDF or HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TinkHash {
    /// For keys that others made.
    Sha1,
    /// That of the templates.
    Sha256,
    /// For keys that others made.
    Sha512,
}

impl TinkHash {
    /// Numbers of Tink's enum HashType.
    const NUMBERS: [(i32, Self); 3] = [(1, Self::Sha1), (3, Self::Sha256), (4, Self::Sha512)];

    fn of(number: i32) -> Result<Self, String> {
        let row = Self::NUMBERS.iter().find(|row| row.0 == number);
        row.map(|row| row.1).ok_or_else(|| format!("has hash {number}, not SHA1, SHA256 or SHA512"))
    }

    fn number(self) -> i32 {
        Self::NUMBERS.iter().find(|row| row.1 == self).map_or(0, |row| row.0)
    }

    const fn digest_bytes(self) -> u32 {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

/// How segments are authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentCipher {
    /// AES-GCM.
    Gcm,
    /// AES-CTR, and HMAC of nonce and ciphertext.
    CtrHmac {
        /// The hash of the HMAC.
        hash: TinkHash,
        /// Bytes of it that are stored.
        tag_bytes: u32,
    },
}

impl SegmentCipher {
    /// Bytes behind each segment's ciphertext.
    #[must_use]
    pub const fn tag_bytes(self) -> u32 {
        match self {
            Self::Gcm => 16,
            Self::CtrHmac { tag_bytes, .. } => tag_bytes,
        }
    }
}

/// A checked streaming key. Wiped when dropped.
pub struct StreamingKey {
    pub(super) id: u32,
    pub(super) segment_bytes: u32,
    pub(super) derived_key_bytes: usize,
    pub(super) hash: TinkHash,
    pub(super) cipher: SegmentCipher,
    pub(super) bytes: Zeroizing<Vec<u8>>,
}

impl StreamingKey {
    /// The key's name in its keyset.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Length of a segment's ciphertext in bytes, tag included; of the first one with the header.
    #[must_use]
    pub const fn segment_bytes(&self) -> u32 {
        self.segment_bytes
    }

    /// Length of the AES key of a file in bytes: 16 or 32. The key itself is at least as long.
    #[must_use]
    pub const fn derived_key_bytes(&self) -> usize {
        self.derived_key_bytes
    }

    /// The hash that derives a file's key.
    #[must_use]
    pub const fn hash(&self) -> TinkHash {
        self.hash
    }

    /// How segments are authenticated.
    #[must_use]
    pub const fn cipher(&self) -> SegmentCipher {
        self.cipher
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The key of an entry; `None` where it is of another kind.
    pub(super) fn of_entry(entry: &Key) -> Result<Option<Self>, FormatError> {
        let about = |fact: &str| wrong(format!("key {} {fact}", entry.key_id));
        let data = entry.key_data.as_ref().ok_or_else(|| about("has no key data"))?;
        if ![GCM_TYPE_URL, CTR_TYPE_URL].contains(&&*data.type_url) {
            return Ok(None);
        }
        if data.key_material_type != SYMMETRIC {
            return Err(about("is not symmetric key material"));
        }
        let message =
            Message::decode(&*data.value).map_err(|_| about("is not the protobuf of a streaming key"))?;
        let is_ctr = data.type_url == CTR_TYPE_URL;
        Self::of_message(message, entry.key_id, is_ctr).map(Some).map_err(|fact| about(&fact))
    }

    /// The key, or what is wrong with it.
    fn of_message(mut message: Message, id: u32, is_ctr: bool) -> Result<Self, String> {
        let bytes = Zeroizing::new(std::mem::take(&mut message.key_value));
        if message.version != 0 {
            return Err(format!("is of version {}, not 0", message.version));
        }
        let params = message.params.unwrap_or_default();
        let derived_key_bytes = match params.derived_key_size {
            16 => 16,
            32 => 32,
            other => return Err(format!("derives keys of {other} bytes, not 16 or 32")),
        };
        let hash = TinkHash::of(params.hkdf_hash_type)?;
        let cipher = if is_ctr { ctr_hmac(params.hmac_params)? } else { SegmentCipher::Gcm };
        let least = 1 + params.derived_key_size + NONCE_PREFIX_BYTES + cipher.tag_bytes() + 1;
        if params.ciphertext_segment_size < least {
            let fact = format!(
                "has segments of {} bytes, at least {least} are needed",
                params.ciphertext_segment_size
            );
            return Err(fact);
        }
        if bytes.len() < derived_key_bytes {
            return Err(format!(
                "is too short: {} bytes, at least {derived_key_bytes} are needed",
                bytes.len()
            ));
        }
        Ok(Self { id, segment_bytes: params.ciphertext_segment_size, derived_key_bytes, hash, cipher, bytes })
    }

    /// The enabled entry of it.
    pub(super) fn entry(&self) -> Key {
        let hmac_params = match self.cipher {
            SegmentCipher::Gcm => None,
            SegmentCipher::CtrHmac { hash, tag_bytes } => {
                Some(HmacParams { hash: hash.number(), tag_size: tag_bytes })
            }
        };
        let type_url = if hmac_params.is_some() { CTR_TYPE_URL } else { GCM_TYPE_URL };
        let params = StreamingParams {
            ciphertext_segment_size: self.segment_bytes,
            derived_key_size: if self.derived_key_bytes == 16 { 16 } else { 32 },
            hkdf_hash_type: self.hash.number(),
            hmac_params,
        };
        let mut message = Message { version: 0, params: Some(params), key_value: self.bytes.to_vec() };
        let value = message.encode_to_vec();
        message.key_value.zeroize();
        let data = KeyData { type_url: type_url.into(), value, key_material_type: SYMMETRIC };
        Key { key_data: Some(data), status: ENABLED, key_id: self.id, output_prefix_type: RAW }
    }
}

fn ctr_hmac(params: Option<HmacParams>) -> Result<SegmentCipher, String> {
    let params = params.ok_or("has no parameters of its HMAC")?;
    let hash = TinkHash::of(params.hash)?;
    // As Tink allows.
    if !(10..=hash.digest_bytes()).contains(&params.tag_size) {
        return Err(format!("has tags of {} bytes, not 10 to {}", params.tag_size, hash.digest_bytes()));
    }
    Ok(SegmentCipher::CtrHmac { hash, tag_bytes: params.tag_size })
}

/// Bytes of the nonce that are random.
const NONCE_PREFIX_BYTES: u32 = 7;
/// Numbers of Tink's enums.
pub(super) const SYMMETRIC: i32 = 1;
pub(super) const ENABLED: i32 = 1;
pub(super) const DISABLED: i32 = 2;
pub(super) const RAW: i32 = 3;
