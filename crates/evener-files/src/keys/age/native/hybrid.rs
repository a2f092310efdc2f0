//! MLKEM768-X25519 (X-Wing), against quantum computers: `age1pq1...`, `AGE-SECRET-KEY-PQ-1...`.

use std::sync::Arc;

use ml_kem::kem::{Decapsulate as _, DecapsulationKey, EncapsulationKey};
use ml_kem::{
    B32, EncapsulateDeterministic as _, Encoded, EncodedSizeUser as _, KemCore as _, MlKem768, MlKem768Params,
};
use sha3::digest::{ExtendableOutput as _, Update as _, XofReader as _};
use sha3::{Digest as _, Sha3_256, Shake256};
use zeroize::Zeroizing;

use super::exchange::{PublicKey, exchange, public_of};
use crate::error::FormatError;
use crate::keys::age::file_key::{
    FileKey, Unwrap, WRAPPED_BYTES, Wrap, Wrapped, malformed, open, random, seal, unwrap_each,
};
use crate::keys::age::stanza::{Stanza, decoded, encoded};
use crate::keys::age::{bech32, hpke};

/// The word of its stanzas.
pub(in crate::keys::age) const KIND: &str = "mlkem768x25519";
const INFO: &[u8] = b"age-encryption.org/mlkem768x25519";
/// Number of MLKEM768-X25519 among HPKE's encapsulations (draft-ietf-hpke-pq).
const KEM: u16 = 0x647A;
/// What its combiner ends with.
const LABEL: &[u8] = br"\.//^\";
/// Lengths of an ML-KEM-768 key and ciphertext, in bytes (FIPS 203).
pub(super) const MLKEM_KEY_BYTES: usize = 1184;
const MLKEM_TEXT_BYTES: usize = 1088;

/// A public key of ML-KEM-768, its coefficients in range.
pub(super) type MlkemKey = EncapsulationKey<MlKem768Params>;

/// A public key.
#[derive(Clone)]
pub(in crate::keys::age) struct HybridRecipient {
    mlkem: Box<MlkemKey>,
    x25519: Arc<PublicKey>,
}

/// The seed of a private key, and what follows from it.
pub(in crate::keys::age) struct HybridIdentity {
    seed: Zeroizing<[u8; 32]>,
    mlkem: Box<DecapsulationKey<MlKem768Params>>,
    x25519: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

impl HybridRecipient {
    /// `None` where the text is none.
    pub(in crate::keys::age) fn parse(text: &str) -> Option<Self> {
        let (prefix, key) = bech32::decode(text)?;
        (prefix == "age1pq" && key.len() == MLKEM_KEY_BYTES + 32).then_some(())?;
        let (mlkem, x25519) = key.split_at(MLKEM_KEY_BYTES);
        let x25519 = Arc::new(PublicKey::new(x25519.try_into().ok()?));
        Some(Self { mlkem: Box::new(mlkem_key(mlkem)?), x25519 })
    }

    pub(in crate::keys::age) fn text(&self) -> String {
        bech32::encode("age1pq", &[&self.mlkem.as_bytes()[..], self.x25519.bytes()].concat()).to_string()
    }
}

/// A public key of ML-KEM-768; `None` where a coefficient is out of range (FIPS 203, 7.2).
pub(super) fn mlkem_key(bytes: &[u8]) -> Option<MlkemKey> {
    let key = MlkemKey::from_bytes(&Encoded::<MlkemKey>::try_from(bytes).ok()?);
    (key.as_bytes()[..] == *bytes).then_some(key)
}

/// A secret for the owner of a key: ciphertext and secret.
pub(super) fn encapsulate(key: &MlkemKey) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), FormatError> {
    let random = random::<32>()?;
    let refused = |()| FormatError::Library("ML-KEM refused a key".into());
    let (text, secret) = key.encapsulate_deterministic(&B32::from(*random)).map_err(refused)?;
    Ok((text.to_vec(), Zeroizing::new(secret.to_vec())))
}

/// The combiner of draft-ietf-hpke-pq: secrets of ML-KEM and of the exchange, the exchange's share and key.
pub(super) fn combined(secrets: [&[u8]; 2], share: &[u8], key: &[u8], label: &[u8]) -> Zeroizing<[u8; 32]> {
    let hash = secrets.iter().fold(Sha3_256::new(), |hash, secret| hash.chain(secret));
    Zeroizing::new(hash.chain(share).chain(key).chain(label).finalize().into())
}

impl HybridIdentity {
    pub(in crate::keys::age) fn generate() -> Result<Self, FormatError> {
        random().map(Self::of_seed)
    }

    fn of_seed(seed: Zeroizing<[u8; 32]>) -> Self {
        let mut expanded = Zeroizing::new([0; 96]);
        Shake256::default().chain(*seed).finalize_xof().read(&mut *expanded);
        let part = |start: usize| {
            Zeroizing::new(<[u8; 32]>::try_from(&expanded[start..start + 32]).expect("three parts of 32"))
        };
        let (d, z, x25519) = (part(0), part(32), part(64));
        let (mlkem, _) = MlKem768::generate_deterministic(&B32::from(*d), &B32::from(*z));
        Self { seed, mlkem: Box::new(mlkem), public: public_of(&x25519), x25519 }
    }

    /// `None` where the text is none.
    pub(in crate::keys::age) fn parse(text: &str) -> Option<Self> {
        let (prefix, seed) = bech32::decode(text)?;
        let is_upper = !text.bytes().any(|byte| byte.is_ascii_lowercase());
        (prefix == "age-secret-key-pq-" && is_upper).then_some(())?;
        Some(Self::of_seed(Zeroizing::new((**seed).try_into().ok()?)))
    }

    pub(in crate::keys::age) fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(bech32::encode("age-secret-key-pq-", &*self.seed).to_ascii_uppercase())
    }

    pub(in crate::keys::age) fn recipient(&self) -> HybridRecipient {
        let mlkem = Box::new(self.mlkem.encapsulation_key().clone());
        HybridRecipient { mlkem, x25519: Arc::new(PublicKey::new(self.public)) }
    }

    fn open(&self, enc: &[u8], body: &[u8]) -> Result<Option<FileKey>, FormatError> {
        let (text, share) = enc.split_at(MLKEM_TEXT_BYTES);
        let share: [u8; 32] = share.try_into().expect("the length was compared");
        let low_order = || malformed("an X25519 share in its header is of small order");
        let exchanged = exchange(&self.x25519, &share).ok_or_else(low_order)?;
        let text = text.try_into().expect("the length was compared");
        let secret = self.mlkem.decapsulate(&text).map(|secret| Zeroizing::new(secret.to_vec()));
        let secret = secret.map_err(|()| FormatError::Library("ML-KEM refused a text".into()))?;
        let shared = combined([&secret, &*exchanged], &share, &self.public, LABEL);
        let (key, nonce) = hpke::key_schedule(KEM, &*shared, INFO);
        Ok(open(&key, &nonce, body))
    }
}

impl Wrap for HybridRecipient {
    fn wrap(&self, file_key: &FileKey) -> Result<Wrapped, FormatError> {
        let (text, secret) = encapsulate(&self.mlkem)?;
        let own = random()?;
        let share = public_of(&own);
        let low_order = || FormatError::Recipient("a point of small order".into());
        let exchanged = self.x25519.exchange(&own).ok_or_else(low_order)?;
        let shared = combined([&secret, &*exchanged], &share, self.x25519.bytes(), LABEL);
        let (key, nonce) = hpke::key_schedule(KEM, &*shared, INFO);
        let enc = encoded(&[&text[..], &share].concat());
        let stanza = Stanza::new(KIND, &[&enc], &seal(&key, &nonce, &**file_key));
        Ok(Wrapped::one(stanza).labelled("postquantum"))
    }
}

impl Unwrap for HybridIdentity {
    fn unwrap(&self, stanzas: &[Stanza]) -> Result<Option<FileKey>, FormatError> {
        unwrap_each(stanzas, KIND, |stanza| {
            let [enc] = &stanza.args[..] else {
                return Err(malformed("a post-quantum stanza of its header has another number of arguments"));
            };
            let enc = decoded(enc).filter(|enc| enc.len() == MLKEM_TEXT_BYTES + 32);
            let enc = enc.ok_or_else(|| malformed("a post-quantum stanza of its header holds no share"))?;
            if stanza.body.len() != WRAPPED_BYTES {
                return Err(malformed("a post-quantum stanza of its header has another length"));
            }
            self.open(&enc, &stanza.body)
        })
    }

    fn name(&self) -> String {
        let text = self.recipient().text();
        // Two thousand characters say no more than the first.
        format!("{}...", &text[..24])
    }
}
