//! Tink streaming AEAD: AES-GCM-HKDF and AES-CTR-HMAC.
//!
//! File = length of the header (1 byte) || salt (as long as the derived key) || nonce prefix (7) || segments.
//! The file's key is HKDF(hash, keyset key, salt, associated data). A segment is AES-GCM ciphertext and tag, or AES-CTR
//! ciphertext and HMAC of nonce and ciphertext; the first one and the header together are as long as the others. The writer makes no empty last segment
//! after others; readers (Tink's as this one) take it.

use evener_core::{Algorithm, Direction};
use hkdf::Hkdf;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::KeyFacts;
use super::body::{Body, CipherKey, Ivs, Opened, Sealing};
use super::mac::SegmentMac;
use super::segmentation::{Cut, Growth};
use crate::error::FormatError;
use crate::keys::keyset::{Keyset, SegmentCipher, StreamingKey, TinkHash};
use crate::random::fill_random;

/// Bytes of the nonce that are random.
const NONCE_PREFIX_BYTES: usize = 7;
/// Bytes of the key of an HMAC.
const HMAC_KEY_BYTES: usize = 32;

/// A keyset and the associated data that files are bound to.
pub struct Tink {
    keyset: Keyset,
    associated_data: Vec<u8>,
}

impl Tink {
    /// Binds a keyset to `associated_data`, empty where there is none.
    #[must_use]
    pub const fn new(keyset: Keyset, associated_data: Vec<u8>) -> Self {
        Self { keyset, associated_data }
    }

    /// Space for a segment of any file under any enabled key, in bytes.
    pub(super) fn slot_bytes(&self) -> u64 {
        self.keyset.enabled_keys().map(|key| cut(key).slot_bytes()).max().unwrap_or(0)
    }

    /// The key that seals, or all that open, and what files are bound to.
    pub(super) fn key_facts(&self, direction: &str) -> KeyFacts {
        let taken = if direction == "seal" { 1 } else { usize::MAX };
        let keys = self.keyset.enabled_keys().take(taken).map(|key| {
            let mut hash = Sha256::new();
            hash.update(b"evener record: key of a keyset");
            hash.update(key.segment_bytes().to_le_bytes());
            hash.update([u8::try_from(key.derived_key_bytes()).expect("16 or 32"), key.hash() as u8]);
            if let SegmentCipher::CtrHmac { hash: of_mac, tag_bytes } = key.cipher() {
                hash.update([of_mac as u8]);
                hash.update(tag_bytes.to_le_bytes());
            }
            hash.update(key.bytes());
            Zeroizing::new(<[u8; 32]>::from(hash.finalize()))
        });
        let keys: Vec<_> = keys.collect();
        let about = [b"tink", direction.as_bytes(), &self.associated_data].map(<[u8]>::to_vec);
        let keys_as_parts = keys.iter().map(|key| key.to_vec());
        KeyFacts {
            secret: keys.first().cloned(),
            parts: about.into_iter().chain(keys_as_parts).map(Zeroizing::new).collect(),
            is_by_passphrase: false,
        }
    }

    pub(super) fn seal(&self) -> Result<Sealing, FormatError> {
        self.sealing(fill_random)
    }

    /// As [`Tink::seal`], but with a pseudorandom salt and nonce prefix: the key's HMAC of `about`, expanded.
    pub(super) fn seal_about(&self, about: &[&[u8]]) -> Result<Sealing, FormatError> {
        let digest = Zeroizing::new(self.key_facts("seal").digest(b"evener shared header 1", &[], about));
        let library = |error: &dyn std::fmt::Display| FormatError::Library(error.to_string());
        self.sealing(|header| {
            let expander = Hkdf::<Sha256>::from_prk(&digest[..]).map_err(|error| library(&error))?;
            expander.expand(b"salt and nonce prefix", header).map_err(|error| library(&error))
        })
    }

    /// A file whose header has what `fill` makes, behind its first byte.
    fn sealing(
        &self,
        fill: impl FnOnce(&mut [u8]) -> Result<(), FormatError>,
    ) -> Result<Sealing, FormatError> {
        let key = self.keyset.primary()?;
        let header_bytes = header_bytes(key.derived_key_bytes());
        let mut header = vec![0; header_bytes];
        fill(&mut header)?;
        header[0] = u8::try_from(header_bytes).expect("24 or 40");
        let body = self.body(key, &header, Direction::Encrypt)?;
        Ok(Sealing { header, body })
    }

    pub(super) fn open(&self, start: &[u8]) -> Result<Opened, FormatError> {
        let keys = self.keyset.enabled_keys();
        Self::candidates(keys, start, |key, header| self.body(key, header, Direction::Decrypt))
    }

    /// As [`Tink::open`], but under the key alone that seals.
    pub(super) fn open_primary(&self, start: &[u8]) -> Result<Opened, FormatError> {
        let keys = std::iter::once(self.keyset.primary()?);
        Self::candidates(keys, start, |key, header| self.body(key, header, Direction::Decrypt))
    }

    /// How new files are cut; where none can be made, as the first key's.
    pub(super) fn primary_cut(&self) -> Cut {
        cut(self.keyset.enabled_keys().next().expect("a keyset has a key that can be used"))
    }

    /// The algorithms that segments of its files take.
    #[must_use]
    pub fn algorithms(&self) -> Vec<Algorithm> {
        let mut all: Vec<Algorithm> = self.keyset.enabled_keys().map(algorithm).collect();
        all.sort_by_key(|algorithm| algorithm.index());
        all.dedup();
        all
    }

    /// What to say where no key opens a file.
    pub(crate) fn no_key_fits(&self) -> FormatError {
        let ids: Vec<String> = self.keyset.enabled_keys().map(|key| key.id().to_string()).collect();
        FormatError::NoKeyFits { facts: format!(": tried the keyset's enabled keys {}", ids.join(", ")) }
    }

    /// What `make` makes of each of `keys` that has headers of this length, and the header.
    fn candidates<'k, T>(
        keys: impl Iterator<Item = &'k StreamingKey>,
        start: &[u8],
        make: impl Fn(&StreamingKey, &[u8]) -> Result<T, FormatError>,
    ) -> Result<Opened<T>, FormatError> {
        let Some(&first) = start.first() else { return Ok(Opened::NeedMore { start_bytes: 1 }) };
        let header_bytes = usize::from(first);
        if !matches!(header_bytes, 24 | 40) {
            return Err(FormatError::Header {
                format: "Tink streaming AEAD",
                fact: "its first byte is not 24 or 40",
            });
        }
        let Some(header) = start.get(..header_bytes) else {
            return Ok(Opened::NeedMore { start_bytes: header_bytes });
        };
        let is_fit = |key: &&StreamingKey| self::header_bytes(key.derived_key_bytes()) == header_bytes;
        let candidates = keys.filter(is_fit).map(|key| make(key, header));
        match candidates.collect::<Result<Vec<T>, FormatError>>()? {
            none if none.is_empty() => Err(FormatError::NoKeyFits { facts: String::new() }),
            candidates => Ok(Opened::Ready(candidates)),
        }
    }

    fn body(&self, key: &StreamingKey, header: &[u8], direction: Direction) -> Result<Body, FormatError> {
        let (salt, prefix) = header[1..].split_at(key.derived_key_bytes());
        let prefix = prefix.try_into().expect("a header ends with seven bytes");
        let ivs = Ivs::Prefixed(prefix);
        let cipher_key = |cipher_key| CipherKey { algorithm: algorithm(key), direction, key: cipher_key };
        match key.cipher() {
            SegmentCipher::Gcm => {
                let derived = derive(key, salt, &self.associated_data, key.derived_key_bytes())?;
                Body::unpadded(cut(key), ivs, cipher_key(&derived))
            }
            SegmentCipher::CtrHmac { hash, tag_bytes } => {
                let bytes = key.derived_key_bytes() + HMAC_KEY_BYTES;
                let derived = derive(key, salt, &self.associated_data, bytes)?;
                let (own_key, mac_key) = derived.split_at(key.derived_key_bytes());
                let tag_bytes = usize::try_from(tag_bytes).expect("at most 64");
                let mac = SegmentMac::new(hash, mac_key, tag_bytes);
                Ok(Body::unpadded(cut(key), ivs, cipher_key(own_key))?.with_mac(mac))
            }
        }
    }
}

fn algorithm(key: &StreamingKey) -> Algorithm {
    match (key.cipher(), key.derived_key_bytes()) {
        (SegmentCipher::Gcm, 16) => Algorithm::Aes128Gcm,
        (SegmentCipher::Gcm, _) => Algorithm::Aes256Gcm,
        (SegmentCipher::CtrHmac { .. }, 16) => Algorithm::Aes128Ctr,
        (SegmentCipher::CtrHmac { .. }, _) => Algorithm::Aes256Ctr,
    }
}

const fn header_bytes(derived_key_bytes: usize) -> usize {
    1 + derived_key_bytes + NONCE_PREFIX_BYTES
}

fn cut(key: &StreamingKey) -> Cut {
    let (header, segment) = (header_bytes(key.derived_key_bytes()) as u64, u64::from(key.segment_bytes()));
    let (growth, tag) = (Growth::Tag { empty_last_is_read: true }, u64::from(key.cipher().tag_bytes()));
    Cut::new(header, segment - header - tag, segment - tag, growth)
        .with_tag_bytes(tag)
        .with_segment_count_max(1 << 32)
}

fn derive(
    key: &StreamingKey,
    salt: &[u8],
    info: &[u8],
    bytes: usize,
) -> Result<Zeroizing<Vec<u8>>, FormatError> {
    let mut derived = Zeroizing::new(vec![0; bytes]);
    let expanded = match key.hash() {
        TinkHash::Sha1 => Hkdf::<sha1::Sha1>::new(Some(salt), key.bytes()).expand(info, &mut derived),
        TinkHash::Sha256 => Hkdf::<Sha256>::new(Some(salt), key.bytes()).expand(info, &mut derived),
        TinkHash::Sha512 => Hkdf::<sha2::Sha512>::new(Some(salt), key.bytes()).expand(info, &mut derived),
    };
    expanded.map_err(|error| FormatError::Library(error.to_string()))?;
    Ok(derived)
}
