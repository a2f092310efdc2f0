//! Ed25519 keys, used on the curve's other form for an exchange (X25519).

use std::sync::Arc;

use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::{EdwardsPoint, Scalar};
use sha2::{Digest as _, Sha512};
use zeroize::Zeroizing;

use super::{tag, wire};
use crate::error::FormatError;
use crate::keys::age::file_key::{
    FileKey, Unwrap, WRAPPED_BYTES, Wrap, Wrapped, ZERO_NONCE, hkdf, malformed, open, random, seal,
    unwrap_each,
};
use crate::keys::age::native::{PublicKey, exchange, public_of};
use crate::keys::age::stanza::{Stanza, decoded, encoded};

pub(super) const KIND: &str = "ssh-ed25519";
const INFO: &[u8] = b"age-encryption.org/v1/ssh-ed25519";

/// A public key.
#[derive(Clone)]
pub(in crate::keys::age) struct Recipient {
    /// In SSH's form.
    public: Vec<u8>,
    /// On the other curve.
    point: [u8; 32],
    /// Its multiple by the number that the public key stands for (age's specification): exchanging with it is one multiplication instead of two.
    tweaked: Arc<PublicKey>,
}

impl Recipient {
    /// `None` where the bytes are no point.
    pub(super) fn of_key(key: &[u8; 32]) -> Option<Self> {
        let point = CompressedEdwardsY(*key).decompress()?.to_montgomery().to_bytes();
        let public = wire::strings(&[KIND.as_bytes(), key]).to_vec();
        // Of a point of small order there are zeros, with which nothing can be exchanged.
        let tweaked = tweaked(&public, &point).map_or([0; 32], |point| *point);
        Some(Self { public, point, tweaked: Arc::new(PublicKey::new(tweaked)) })
    }

    pub(super) fn public(&self) -> &[u8] {
        &self.public
    }

    pub(super) fn tag(&self) -> String {
        tag(&self.public)
    }

    fn wrap_key(&self, share: &[u8; 32], tweaked: &[u8; 32]) -> Zeroizing<[u8; 32]> {
        hkdf(&[*share, self.point].concat(), INFO, tweaked)
    }
}

/// The multiple of a point by the number that a public key, in SSH's form, stands for.
fn tweaked(public: &[u8], point: &[u8; 32]) -> Option<Zeroizing<[u8; 32]>> {
    exchange(&hkdf(public, INFO, b""), point)
}

impl Wrap for Recipient {
    fn wrap(&self, file_key: &FileKey) -> Result<Wrapped, FormatError> {
        let secret = random()?;
        let share = public_of(&secret);
        let exchanged = self.tweaked.exchange(&secret);
        let exchanged =
            exchanged.ok_or_else(|| FormatError::Recipient("an SSH key of small order".into()))?;
        let key = self.wrap_key(&share, &exchanged);
        let body = seal(&key, &ZERO_NONCE, &**file_key);
        Ok(Wrapped::one(Stanza::new(KIND, &[&self.tag(), &encoded(&share)], &body)))
    }
}

/// A private key.
pub(in crate::keys::age) struct Identity {
    recipient: Recipient,
    /// On the other curve.
    secret: Zeroizing<[u8; 32]>,
}

impl Identity {
    /// The key that a seed makes (RFC 8032, 5.1.5).
    pub(super) fn of_seed(seed: &[u8; 32]) -> Option<Self> {
        let hash = Zeroizing::new(<[u8; 64]>::from(Sha512::digest(seed)));
        let secret = Zeroizing::new(<[u8; 32]>::try_from(&hash[..32]).expect("half of 64"));
        let scalar = Zeroizing::new(curve25519_dalek::scalar::clamp_integer(*secret));
        let scalar = Scalar::from_bytes_mod_order(*scalar);
        let public = EdwardsPoint::mul_base(&scalar).compress().to_bytes();
        Some(Self { recipient: Recipient::of_key(&public)?, secret })
    }

    pub(super) fn recipient(&self) -> Recipient {
        self.recipient.clone()
    }

    pub(super) fn tag(&self) -> String {
        self.recipient.tag()
    }
}

impl Unwrap for Identity {
    fn unwrap(&self, stanzas: &[Stanza]) -> Result<Option<FileKey>, FormatError> {
        unwrap_each(stanzas, KIND, |stanza| {
            let [tag, share] = &stanza.args[..] else {
                return Err(malformed("an ssh-ed25519 stanza of its header has another number of arguments"));
            };
            let share = decoded(share).and_then(|share| <[u8; 32]>::try_from(share).ok());
            let share =
                share.ok_or_else(|| malformed("an ssh-ed25519 stanza of its header holds no share"))?;
            if *tag != self.tag() {
                return Ok(None);
            }
            if stanza.body.len() != WRAPPED_BYTES {
                return Err(malformed("an ssh-ed25519 stanza of its header has another length"));
            }
            let key = exchange(&self.secret, &share)
                .and_then(|exchanged| tweaked(&self.recipient.public, &exchanged))
                .map(|tweaked| self.recipient.wrap_key(&share, &tweaked))
                .ok_or_else(|| malformed("an ssh-ed25519 share in its header is of small order"))?;
            Ok(open(&key, &ZERO_NONCE, &stanza.body))
        })
    }

    fn name(&self) -> String {
        format!("{KIND} {}", self.tag())
    }
}
