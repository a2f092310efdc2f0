//! Encrypted keysets: a keyset under an AEAD key of another keyset, the key-encryption keyset, as Tink writes it.
//!
//! Text = prefix (version and id of the key, five bytes, or none) || nonce || ciphertext || tag, with no associated data.

use chacha20poly1305::aead::{Aead as _, KeyInit as _};
use chacha20poly1305::{ChaCha20Poly1305, XChaCha20Poly1305};
use evener_evp::gcm;
use prost::Message as _;
use zeroize::Zeroizing;

use super::document::read_clear;
use super::proto::{AeadKey, Key, Keyset, PREFIX, name_of};
use super::streaming_key::ENABLED;
use super::wrong;
use crate::error::FormatError;
use crate::random::fill_random;

const TYPE_PREFIX: &str = "type.googleapis.com/google.crypto.tink.";

/// The keys that keysets are encrypted with.
pub struct KeyEncryption {
    keys: Vec<AnyAead>,
    /// Place of the one that encrypts.
    primary: Option<usize>,
}

struct AnyAead {
    kind: Kind,
    prefix: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    AesGcm,
    ChaCha20Poly1305,
    XChaCha20Poly1305,
}

impl KeyEncryption {
    /// Reads a cleartext keyset of AEAD keys: AES-GCM, ChaCha20-Poly1305, XChaCha20-Poly1305. Others are left aside.
    ///
    /// # Errors
    ///
    /// [`FormatError::Keyset`] where it is none, or holds no key of these kinds.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut keyset = read_clear(bytes)?;
        let mut kek = Self { keys: Vec::new(), primary: None };
        for entry in keyset.key.iter().filter(|entry| entry.status == ENABLED) {
            if let Some(key) = AnyAead::of_entry(entry) {
                if entry.key_id == keyset.primary_key_id {
                    kek.primary = Some(kek.keys.len());
                }
                kek.keys.push(key);
            }
        }
        keyset.wipe();
        if kek.keys.is_empty() {
            let fact = "it holds no enabled key of AES-GCM, ChaCha20-Poly1305 or XChaCha20-Poly1305, which encrypt keysets";
            return Err(wrong(fact.into()));
        }
        Ok(kek)
    }

    pub(super) fn decrypted(&self, text: &[u8]) -> Result<Keyset, FormatError> {
        let opened = self.keys.iter().find_map(|key| key.open(text));
        let opened = opened.ok_or_else(|| wrong("the key-encryption keyset does not open it".into()))?;
        Keyset::decode(&**opened).map_err(|_| wrong("what is encrypted is no keyset".into()))
    }

    pub(super) fn encrypted(&self, keyset: &Keyset) -> Result<Vec<u8>, FormatError> {
        let no_primary = || wrong("the primary key of the key-encryption keyset is of another kind".into());
        let key = &self.keys[self.primary.ok_or_else(no_primary)?];
        key.seal(&Zeroizing::new(keyset.encode_to_vec()))
    }
}

impl AnyAead {
    fn of_entry(entry: &Key) -> Option<Self> {
        let data = entry.key_data.as_ref()?;
        let kind = match data.type_url.strip_prefix(TYPE_PREFIX)? {
            "AesGcmKey" => Kind::AesGcm,
            "ChaCha20Poly1305Key" => Kind::ChaCha20Poly1305,
            "XChaCha20Poly1305Key" => Kind::XChaCha20Poly1305,
            _ => return None,
        };
        let message = AeadKey::decode(&*data.value).ok().filter(|message| message.version == 0)?;
        let (second, third) = (Zeroizing::new(message.key_value_2), Zeroizing::new(message.key_value_3));
        let key = if kind == Kind::ChaCha20Poly1305 { second } else { third };
        let fits = key.len() == 32 || (kind == Kind::AesGcm && key.len() == 16);
        let id = entry.key_id.to_be_bytes();
        let prefix = match name_of(PREFIX, entry.output_prefix_type) {
            "TINK" => [&[1], &id[..]].concat(),
            "RAW" => Vec::new(),
            _ => [&[0], &id[..]].concat(),
        };
        fits.then_some(Self { kind, prefix, key })
    }

    const fn nonce_bytes(&self) -> usize {
        match self.kind {
            Kind::AesGcm | Kind::ChaCha20Poly1305 => 12,
            Kind::XChaCha20Poly1305 => 24,
        }
    }

    fn open(&self, text: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, sealed) = text.strip_prefix(&*self.prefix)?.split_at_checked(self.nonce_bytes())?;
        let opened = match self.kind {
            Kind::AesGcm => return gcm::open(&self.key, nonce.try_into().ok()?, sealed).ok(),
            Kind::ChaCha20Poly1305 => {
                ChaCha20Poly1305::new_from_slice(&self.key).ok()?.decrypt(nonce.into(), sealed)
            }
            Kind::XChaCha20Poly1305 => {
                XChaCha20Poly1305::new_from_slice(&self.key).ok()?.decrypt(nonce.into(), sealed)
            }
        };
        opened.ok().map(Zeroizing::new)
    }

    fn seal(&self, plain: &[u8]) -> Result<Vec<u8>, FormatError> {
        let refused = || FormatError::Library("the keyset could not be encrypted".into());
        let mut nonce = vec![0; self.nonce_bytes()];
        fill_random(&mut nonce)?;
        let nonce_12 = || <[u8; 12]>::try_from(&nonce[..]).map_err(|_| refused());
        let sealed = match self.kind {
            Kind::AesGcm => gcm::seal(&self.key, &nonce_12()?, plain).map_err(|_| refused())?,
            Kind::ChaCha20Poly1305 => ChaCha20Poly1305::new_from_slice(&self.key)
                .ok()
                .and_then(|cipher| cipher.encrypt(nonce[..].into(), plain).ok())
                .ok_or_else(refused)?,
            Kind::XChaCha20Poly1305 => XChaCha20Poly1305::new_from_slice(&self.key)
                .ok()
                .and_then(|cipher| cipher.encrypt(nonce[..].into(), plain).ok())
                .ok_or_else(refused)?,
        };
        Ok([&self.prefix[..], &nonce, &sealed].concat())
    }
}
