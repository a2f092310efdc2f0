//! A file with a private key: OpenSSH's own form, or PEM (PKCS #8, PKCS #1), encrypted or not.

use evener_evp::PemKey;
use secrecy::{ExposeSecret as _, SecretString};

use super::{SshIdentity, SshRecipient, ed25519, openssh, rsa};
use crate::error::FormatError;
use crate::keys::age::facts::{no_ssh_key, wrong_ssh_passphrase};

/// What a file with a private key holds.
pub(in crate::keys::age) enum SshSecret {
    /// A key.
    Open(SshIdentity),
    /// A key under a passphrase.
    Encrypted(EncryptedKey),
}

/// A key under a passphrase.
pub(in crate::keys::age) enum EncryptedKey {
    OpenSsh(openssh::EncryptedKey),
    Pem(zeroize::Zeroizing<String>),
}

/// Reads a file that begins with `-----BEGIN`.
pub(in crate::keys::age) fn read(text: &str) -> Result<SshSecret, FormatError> {
    if text.starts_with(openssh::FIRST_LINE) {
        return openssh::read(text).map(|read| match read {
            openssh::Read::Open(identity) => SshSecret::Open(identity),
            openssh::Read::Encrypted(key) => SshSecret::Encrypted(EncryptedKey::OpenSsh(key)),
        });
    }
    if ["-----BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED"]
        .iter()
        .any(|mark| text.contains(mark))
    {
        return Ok(SshSecret::Encrypted(EncryptedKey::Pem(text.to_owned().into())));
    }
    of_pem(text, "").map(SshSecret::Open)
}

impl EncryptedKey {
    /// The recipient that belongs to the key, where the file tells it without the passphrase.
    pub(in crate::keys::age) fn recipient(&self) -> Option<&SshRecipient> {
        match self {
            Self::OpenSsh(key) => Some(key.recipient()),
            Self::Pem(_) => None,
        }
    }

    /// The key.
    pub(in crate::keys::age) fn decrypted(
        &self,
        passphrase: &SecretString,
    ) -> Result<SshIdentity, FormatError> {
        match self {
            Self::OpenSsh(key) => key.decrypted(passphrase.expose_secret()),
            Self::Pem(text) => of_pem(text, passphrase.expose_secret())
                .map_err(|error| if error == no_ssh_key() { wrong_ssh_passphrase() } else { error }),
        }
    }
}

fn of_pem(text: &str, passphrase: &str) -> Result<SshIdentity, FormatError> {
    match PemKey::read(text.as_bytes(), passphrase).map_err(|_| no_ssh_key())? {
        PemKey::Rsa { key, modulus, exponent } => {
            Ok(SshIdentity::Rsa(rsa::Identity::new(key, modulus, exponent)))
        }
        PemKey::Ed25519(seed) => {
            ed25519::Identity::of_seed(&seed).map(SshIdentity::Ed25519).ok_or_else(no_ssh_key)
        }
        PemKey::Other => {
            Err(FormatError::Unsupported("SSH keys of another kind than RSA and Ed25519".into()))
        }
    }
}
