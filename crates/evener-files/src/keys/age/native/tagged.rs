//! Recipients of hardware keys, whose identities are plugins': `age1tag1...` (P-256) and `age1tagpq1...` (with ML-KEM-768).

use evener_evp::p256;
use hkdf::Hkdf;
use sha2::{Digest as _, Sha256};

use super::hybrid::{MLKEM_KEY_BYTES, MlkemKey, combined, encapsulate, mlkem_key};
use crate::error::FormatError;
use crate::keys::age::file_key::{FileKey, Wrap, Wrapped, seal};
use crate::keys::age::stanza::{Stanza, decoded, encoded};
use crate::keys::age::{bech32, hpke};

/// Bytes of the hash of a key, and of the tag that is made of it.
const TAG_BYTES: usize = 4;

/// What differs between the two kinds.
struct Kind {
    word: &'static str,
    info: &'static str,
    kem: u16,
}

const TAG: Kind = Kind { word: "p256tag", info: "age-encryption.org/p256tag", kem: 0x0010 };
const TAG_PQ: Kind =
    Kind { word: "mlkem768p256tag", info: "age-encryption.org/mlkem768p256tag", kem: 0x0050 };
/// What the combiner of MLKEM768-P256 ends with.
const LABEL: &[u8] = b"MLKEM768-P256";

/// A point of P-256.
#[derive(Clone)]
pub(in crate::keys::age) struct TagRecipient {
    point: [u8; p256::POINT_BYTES],
}

/// A key of ML-KEM-768 and a point of P-256.
#[derive(Clone)]
pub(in crate::keys::age) struct TagPqRecipient {
    mlkem: Box<MlkemKey>,
    point: [u8; p256::POINT_BYTES],
}

impl TagRecipient {
    /// `None` where the text is none.
    pub(in crate::keys::age) fn parse(text: &str) -> Option<Self> {
        let (prefix, key) = bech32::decode(text)?;
        (prefix == "age1tag" && key.len() == 33).then_some(())?;
        Some(Self { point: p256::uncompressed(&key).ok()? })
    }

    /// Whether a stanza is for it.
    pub(in crate::keys::age) fn is_named_by(&self, stanza: &Stanza) -> bool {
        TAG.names(stanza, &p256::compressed(&self.point))
    }
}

impl TagPqRecipient {
    /// `None` where the text is none.
    pub(in crate::keys::age) fn parse(text: &str) -> Option<Self> {
        let (prefix, key) = bech32::decode(text)?;
        (prefix == "age1tagpq" && key.len() == MLKEM_KEY_BYTES + p256::POINT_BYTES).then_some(())?;
        let (mlkem, point) = key.split_at(MLKEM_KEY_BYTES);
        let point = (point[0] == 4).then(|| p256::uncompressed(point).ok())??;
        Some(Self { mlkem: Box::new(mlkem_key(mlkem)?), point })
    }

    /// Whether a stanza is for it.
    pub(in crate::keys::age) fn is_named_by(&self, stanza: &Stanza) -> bool {
        TAG_PQ.names(stanza, &self.point)
    }
}

impl Wrap for TagRecipient {
    fn wrap(&self, file_key: &FileKey) -> Result<Wrapped, FormatError> {
        let (share, exchanged) = share_with(&self.point)?;
        let shared = hpke::dh_secret(TAG.kem, &*exchanged, &share, &self.point);
        Ok(TAG.wrapped(&shared, &share, &p256::compressed(&self.point), file_key))
    }
}

impl Wrap for TagPqRecipient {
    fn wrap(&self, file_key: &FileKey) -> Result<Wrapped, FormatError> {
        let (text, secret) = encapsulate(&self.mlkem)?;
        let (share, exchanged) = share_with(&self.point)?;
        let shared = combined([&secret, &*exchanged], &share, &self.point, LABEL);
        let enc = [&text[..], &share].concat();
        Ok(TAG_PQ.wrapped(&shared, &enc, &self.point, file_key).labelled("postquantum"))
    }
}

type Share = ([u8; p256::POINT_BYTES], zeroize::Zeroizing<[u8; 32]>);

fn share_with(point: &[u8]) -> Result<Share, FormatError> {
    p256::share_with(point).map_err(|error| FormatError::Library(error.to_string()))
}

impl Kind {
    fn wrapped(&self, shared: &[u8; 32], enc: &[u8], key: &[u8], file_key: &FileKey) -> Wrapped {
        let (wrap_key, nonce) = hpke::key_schedule(self.kem, shared, self.info.as_bytes());
        let args = [encoded(&self.tag(enc, key)), encoded(enc)];
        let body = seal(&wrap_key, &nonce, &**file_key);
        Wrapped::one(Stanza::new(self.word, &[&args[0], &args[1]], &body))
    }

    /// What shows the owner of a key that a share is for it.
    fn tag(&self, enc: &[u8], key: &[u8]) -> [u8; TAG_BYTES] {
        let named = [enc, &Sha256::digest(key)[..TAG_BYTES]].concat();
        let tag = Hkdf::<Sha256>::extract(Some(self.info.as_bytes()), &named).0;
        [tag[0], tag[1], tag[2], tag[3]]
    }

    fn names(&self, stanza: &Stanza, key: &[u8]) -> bool {
        let [tag, enc] = &stanza.args[..] else { return false };
        let enc = decoded(enc).unwrap_or_default();
        stanza.kind == self.word && *tag == encoded(&self.tag(&enc, key))
    }
}
