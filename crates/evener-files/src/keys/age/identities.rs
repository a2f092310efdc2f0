//! Identities: the secrets that open files, and new ones.

use std::time::SystemTime;

use age::{Identity, ssh, x25519};
use age_core::secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::date::rfc3339;
use super::facts::{identity, no_passphrase};
use super::identity_file::{AskPassphrase, Secret, secrets};
use super::passphrase::{WorkFactors, passphrase_identity};
use crate::error::FormatError;

/// The identities that open files. Keys are wiped when they are dropped, as far as the crate `age` does.
#[derive(Default)]
pub struct Identities {
    all: Vec<Box<dyn Identity + Send + Sync>>,
}

impl Identities {
    /// Adds the identity that `passphrase` is.
    pub fn add_passphrase(&mut self, passphrase: SecretString, factors: WorkFactors) {
        self.all.push(Box::new(passphrase_identity(passphrase, factors)));
    }

    /// Adds the identities of a file: age identities one a line, or an SSH private key, or age identities
    /// encrypted by age with a passphrase. `prompt` is called for encrypted SSH keys and files.
    ///
    /// # Errors
    ///
    /// [`FormatError::Identity`] or [`FormatError::Unsupported`]; no text of the file is repeated.
    pub fn add_file(&mut self, bytes: &[u8], prompt: &mut AskPassphrase<'_>) -> Result<(), FormatError> {
        for secret in secrets(bytes, prompt)? {
            match secret {
                Secret::Native(identity) => self.all.push(Box::new(identity)),
                Secret::Ssh(ssh::Identity::Encrypted(key)) => {
                    let passphrase = prompt("the SSH key").ok_or_else(no_passphrase)?;
                    let key =
                        key.decrypt(passphrase).map_err(|_| identity("wrong passphrase for the SSH key"))?;
                    self.all.push(Box::new(ssh::Identity::from(key)));
                }
                Secret::Ssh(identity) => self.all.push(Box::new(identity)),
            }
        }
        Ok(())
    }

    pub(crate) fn all(&self) -> &[Box<dyn Identity + Send + Sync>] {
        &self.all
    }
}

/// A new identity and the recipient that belongs to it.
pub struct NewIdentity {
    /// An identity file, as `age-keygen` writes it: to be stored where only its owner can read it.
    pub file: Zeroizing<String>,
    /// `age1...`
    pub recipient: String,
}

/// Makes an age identity; `now` goes into a comment.
#[must_use]
pub fn generate_identity(now: SystemTime) -> NewIdentity {
    let identity = x25519::Identity::generate();
    let (secret, recipient) = (identity.to_string(), identity.to_public().to_string());
    let created = rfc3339(now);
    let file = format!("# created: {created}\n# public key: {recipient}\n{}\n", secret.expose_secret());
    NewIdentity { file: Zeroizing::new(file), recipient }
}
