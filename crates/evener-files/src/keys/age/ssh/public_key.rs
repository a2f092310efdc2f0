//! A line of `authorized_keys`: options, kind, the key in base64, a comment.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::{ed25519, rsa, wire};
use crate::error::FormatError;
use crate::keys::age::file_key::{FileKey, Wrap, Wrapped};

/// A public key that files are sealed for.
#[derive(Clone)]
pub(in crate::keys::age) enum SshRecipient {
    Ed25519(ed25519::Recipient),
    Rsa(rsa::Recipient),
}

/// Why a line is no recipient.
pub(in crate::keys::age) enum NoRecipient {
    /// It holds no SSH key at all.
    NoKey,
    /// It holds an SSH key that cannot be one.
    Unusable(FormatError),
}

impl SshRecipient {
    /// Reads a line.
    pub(in crate::keys::age) fn parse(line: &str) -> Result<Self, NoRecipient> {
        let (kind, public) = key(line).ok_or(NoRecipient::NoKey)?;
        of_public(kind, &public).map_err(NoRecipient::Unusable)
    }

    /// Kind and first argument of its stanzas, which follow from the key.
    pub(in crate::keys::age) fn stanza_start(&self) -> (&'static str, String) {
        match self {
            Self::Ed25519(key) => (ed25519::KIND, key.tag()),
            Self::Rsa(key) => (rsa::KIND, key.tag()),
        }
    }

    /// The line of it, without a comment.
    pub(in crate::keys::age) fn text(&self) -> String {
        let (kind, public) = match self {
            Self::Ed25519(key) => (ed25519::KIND, key.public()),
            Self::Rsa(key) => (rsa::KIND, key.public()),
        };
        format!("{kind} {}", BASE64_STANDARD.encode(public))
    }
}

impl Wrap for SshRecipient {
    fn wrap(&self, file_key: &FileKey) -> Result<Wrapped, FormatError> {
        match self {
            Self::Ed25519(key) => key.wrap(file_key),
            Self::Rsa(key) => key.wrap(file_key),
        }
    }
}

/// The kind and the key in a line, wherever options end: a word that the key behind it repeats.
fn key(line: &str) -> Option<(&str, Vec<u8>)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    words.windows(2).find_map(|pair| {
        let public = BASE64_STANDARD.decode(pair[1]).ok()?;
        let kind = wire::Reader(&public).text()?;
        (kind == pair[0]).then_some((pair[0], public))
    })
}

/// The recipient of a key in SSH's form.
pub(super) fn of_public(kind: &str, public: &[u8]) -> Result<SshRecipient, FormatError> {
    let no_key = || FormatError::Recipient("not an SSH public key".into());
    let mut reader = wire::Reader(public);
    reader.string().ok_or_else(no_key)?;
    match kind {
        ed25519::KIND => {
            let key = reader.string().and_then(|key| key.try_into().ok());
            let key = key.and_then(ed25519::Recipient::of_key);
            key.filter(|key| key.public() == public).map(SshRecipient::Ed25519).ok_or_else(no_key)
        }
        rsa::KIND => {
            let (exponent, modulus) = reader.large().zip(reader.large()).ok_or_else(no_key)?;
            let key = rsa::Recipient::of_numbers(modulus, exponent)?;
            if key.public() == public { Ok(SshRecipient::Rsa(key)) } else { Err(no_key()) }
        }
        kind => Err(FormatError::Unsupported(format!("SSH keys of type {kind}"))),
    }
}
