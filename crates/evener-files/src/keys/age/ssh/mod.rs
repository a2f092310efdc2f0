//! SSH keys as recipients and identities: Ed25519 and RSA, as age takes them.
//!
//! A line of `authorized_keys` -> [`SshRecipient`]. A private key's file (`private_key.rs`: PEM by libcrypto; `openssh.rs`: OpenSSH's own form) ->
//! [`SshIdentity`]. The stanzas that they make and open stand in `ed25519.rs` and `rsa.rs`.

mod ed25519;
mod openssh;
mod private_key;
mod public_key;
mod rsa;
mod wire;

pub(super) use private_key::{SshSecret, read};
pub(super) use public_key::{NoRecipient, SshRecipient};

use sha2::{Digest as _, Sha256};

use crate::error::FormatError;
use crate::keys::age::file_key::{FileKey, Unwrap};
use crate::keys::age::stanza::{Stanza, encoded};

/// Bytes of the SHA-256 of an SSH public key that stand in a stanza.
const TAG_BYTES: usize = 4;

/// What names a public key, in SSH's form, in a stanza.
fn tag(public: &[u8]) -> String {
    encoded(&Sha256::digest(public)[..TAG_BYTES])
}

/// A private key that opens files.
pub(super) enum SshIdentity {
    Ed25519(ed25519::Identity),
    Rsa(rsa::Identity),
}

impl SshIdentity {
    /// The recipient that belongs to it.
    pub(super) fn recipient(&self) -> Result<SshRecipient, FormatError> {
        match self {
            Self::Ed25519(identity) => Ok(SshRecipient::Ed25519(identity.recipient())),
            Self::Rsa(identity) => identity.recipient().map(SshRecipient::Rsa),
        }
    }
}

impl Unwrap for SshIdentity {
    fn unwrap(&self, stanzas: &[Stanza]) -> Result<Option<FileKey>, FormatError> {
        match self {
            Self::Ed25519(identity) => identity.unwrap(stanzas),
            Self::Rsa(identity) => identity.unwrap(stanzas),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Ed25519(identity) => format!("ssh-ed25519 {}", identity.tag()),
            Self::Rsa(identity) => format!("ssh-rsa {}", identity.tag()),
        }
    }
}
