//! X25519: `age1...`, `AGE-SECRET-KEY-1...`.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::exchange::{PublicKey, exchange, public_of};
use crate::error::FormatError;
use crate::keys::age::bech32;
use crate::keys::age::file_key::{
    FileKey, Unwrap, WRAPPED_BYTES, Wrap, Wrapped, ZERO_NONCE, hkdf, malformed, open, random, seal,
    unwrap_each,
};
use crate::keys::age::stanza::{Stanza, decoded, encoded};

/// The word of its stanzas.
pub(in crate::keys::age) const KIND: &str = "X25519";
const INFO: &[u8] = b"age-encryption.org/v1/X25519";

/// A public key.
#[derive(Clone)]
pub(in crate::keys::age) struct X25519Recipient(Arc<PublicKey>);

/// A private key.
#[derive(Clone)]
pub(in crate::keys::age) struct X25519Identity {
    secret: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

impl X25519Recipient {
    /// `None` where the text is none.
    pub(in crate::keys::age) fn parse(text: &str) -> Option<Self> {
        let (prefix, key) = bech32::decode(text)?;
        (prefix == "age").then_some(())?;
        Some(Self::of((**key).try_into().ok()?))
    }

    fn of(key: [u8; 32]) -> Self {
        Self(Arc::new(PublicKey::new(key)))
    }

    pub(in crate::keys::age) fn text(&self) -> String {
        bech32::encode("age", self.0.bytes()).to_string()
    }
}

impl X25519Identity {
    pub(in crate::keys::age) fn generate() -> Result<Self, FormatError> {
        random().map(Self::of)
    }

    /// `None` where the text is none.
    pub(in crate::keys::age) fn parse(text: &str) -> Option<Self> {
        let (prefix, key) = bech32::decode(text)?;
        (prefix == "age-secret-key-" && is_upper(text)).then_some(())?;
        Some(Self::of(Zeroizing::new((**key).try_into().ok()?)))
    }

    fn of(secret: Zeroizing<[u8; 32]>) -> Self {
        Self { public: public_of(&secret), secret }
    }

    pub(in crate::keys::age) fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(bech32::encode("age-secret-key-", &*self.secret).to_ascii_uppercase())
    }

    pub(in crate::keys::age) fn recipient(&self) -> X25519Recipient {
        X25519Recipient::of(self.public)
    }
}

fn is_upper(text: &str) -> bool {
    !text.bytes().any(|byte| byte.is_ascii_lowercase())
}

impl Wrap for X25519Recipient {
    fn wrap(&self, file_key: &FileKey) -> Result<Wrapped, FormatError> {
        let secret = random()?;
        let share = public_of(&secret);
        let shared = self.0.exchange(&secret);
        let shared = shared.ok_or_else(|| FormatError::Recipient("a point of small order".into()))?;
        let key = hkdf(&[share, *self.0.bytes()].concat(), INFO, &*shared);
        let body = seal(&key, &ZERO_NONCE, &**file_key);
        Ok(Wrapped::one(Stanza::new(KIND, &[&encoded(&share)], &body)))
    }
}

impl Unwrap for X25519Identity {
    fn unwrap(&self, stanzas: &[Stanza]) -> Result<Option<FileKey>, FormatError> {
        unwrap_each(stanzas, KIND, |stanza| {
            let [share] = &stanza.args[..] else {
                return Err(malformed("an X25519 stanza of its header has another number of arguments"));
            };
            let share = decoded(share).and_then(|share| <[u8; 32]>::try_from(share).ok());
            let share = share.ok_or_else(|| malformed("an X25519 stanza of its header holds no share"))?;
            if stanza.body.len() != WRAPPED_BYTES {
                return Err(malformed("an X25519 stanza of its header has another length"));
            }
            let shared = exchange(&self.secret, &share)
                .ok_or_else(|| malformed("an X25519 share in its header is of small order"))?;
            let key = hkdf(&[share, self.public].concat(), INFO, &*shared);
            Ok(open(&key, &ZERO_NONCE, &stanza.body))
        })
    }

    fn name(&self) -> String {
        self.recipient().text()
    }
}
