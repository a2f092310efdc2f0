//! RSA keys: OAEP with SHA-256, by libcrypto.

use std::sync::Arc;

use evener_evp::RsaKey;
use zeroize::Zeroizing;

use super::{tag, wire};
use crate::error::FormatError;
use crate::keys::age::file_key::{FileKey, Unwrap, Wrap, Wrapped, malformed, unwrap_each};
use crate::keys::age::stanza::Stanza;

pub(super) const KIND: &str = "ssh-rsa";
const LABEL: &[u8] = b"age-encryption.org/v1/ssh-rsa";
/// Lengths of a modulus in bits: shorter ones are weak, longer ones cost an attacker's victim seconds (16384 is OpenSSH's limit).
const BITS_MIN: usize = 2048;
const BITS_MAX: usize = 16384;

/// A public key.
#[derive(Clone)]
pub(in crate::keys::age) struct Recipient {
    key: Arc<RsaKey>,
    /// In SSH's form.
    public: Vec<u8>,
}

impl Recipient {
    pub(super) fn of_numbers(modulus: &[u8], exponent: &[u8]) -> Result<Self, FormatError> {
        check(modulus)?;
        let key = RsaKey::public(modulus, exponent);
        let key = key.map_err(|_| FormatError::Recipient("not an RSA key".into()))?;
        Ok(Self { key: Arc::new(key), public: public(modulus, exponent) })
    }

    pub(super) fn public(&self) -> &[u8] {
        &self.public
    }

    pub(super) fn tag(&self) -> String {
        tag(&self.public)
    }
}

fn public(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    wire::strings(&[KIND.as_bytes(), &wire::large(exponent), &wire::large(modulus)]).to_vec()
}

fn check(modulus: &[u8]) -> Result<(), FormatError> {
    let zeros = modulus.first().map_or(0, |first| first.leading_zeros());
    match modulus.len() * 8 - usize::try_from(zeros).unwrap_or(0) {
        ..BITS_MIN => Err(FormatError::Recipient("the RSA key has less than 2048 bits".into())),
        BITS_MIN..=BITS_MAX => Ok(()),
        _ => Err(FormatError::Recipient("the RSA key has more than 16384 bits".into())),
    }
}

impl Wrap for Recipient {
    fn wrap(&self, file_key: &FileKey) -> Result<Wrapped, FormatError> {
        let body = self.key.encrypt_oaep(LABEL, &**file_key);
        let body = body.map_err(|error| FormatError::Library(format!("RSA: {error}")))?;
        Ok(Wrapped::one(Stanza::new(KIND, &[&self.tag()], &body)))
    }
}

/// A private key.
pub(in crate::keys::age) struct Identity {
    key: RsaKey,
    modulus: Vec<u8>,
    exponent: Vec<u8>,
}

impl Identity {
    pub(super) fn new(key: RsaKey, modulus: Vec<u8>, exponent: Vec<u8>) -> Self {
        Self { key, modulus, exponent }
    }

    pub(super) fn recipient(&self) -> Result<Recipient, FormatError> {
        Recipient::of_numbers(&self.modulus, &self.exponent)
    }

    pub(super) fn tag(&self) -> String {
        tag(&public(&self.modulus, &self.exponent))
    }
}

impl Unwrap for Identity {
    fn unwrap(&self, stanzas: &[Stanza]) -> Result<Option<FileKey>, FormatError> {
        unwrap_each(stanzas, KIND, |stanza| {
            let [tag] = &stanza.args[..] else {
                return Err(malformed("an ssh-rsa stanza of its header has another number of arguments"));
            };
            if *tag != self.tag() {
                return Ok(None);
            }
            // A tag may belong to another key by chance; a text that does not open is not for this one.
            let Ok(opened) = self.key.decrypt_oaep(LABEL, &stanza.body) else { return Ok(None) };
            let file_key = opened[..].try_into().map(Zeroizing::new);
            file_key.map(Some).map_err(|_| malformed("an ssh-rsa stanza of its header holds another key"))
        })
    }

    fn name(&self) -> String {
        format!("{KIND} {}", self.tag())
    }
}
