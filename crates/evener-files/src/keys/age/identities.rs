//! Identities: the secrets that open files, and new ones.

use std::time::SystemTime;

use age::{Identity, ssh, x25519};
use age_core::secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::date::rfc3339;
use super::facts::{identity, no_passphrase};
use super::identity_file::{AskPassphrase, Secret, secrets};
use super::passphrase::passphrase_identity;
use crate::error::FormatError;

/// The identities that open files. Keys are wiped when they are dropped, as far as the crate `age` does.
#[derive(Default)]
pub struct Identities {
    all: Vec<Box<dyn Identity + Send + Sync>>,
    /// The recipients that they belong to, each as it is written; a passphrase has no name.
    names: Vec<String>,
}

impl Identities {
    /// Adds the identity that `passphrase` is.
    pub fn add_passphrase(&mut self, passphrase: SecretString) {
        self.all.push(Box::new(passphrase_identity(passphrase)));
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
                Secret::Native(identity) => {
                    self.names.push(identity.to_public().to_string());
                    self.all.push(Box::new(identity));
                }
                Secret::Ssh(ssh::Identity::Encrypted(key)) => {
                    let passphrase = prompt("the SSH key").ok_or_else(no_passphrase)?;
                    let key =
                        key.decrypt(passphrase).map_err(|_| identity("wrong passphrase for the SSH key"))?;
                    self.push_ssh(ssh::Identity::from(key));
                }
                Secret::Ssh(identity) => self.push_ssh(identity),
            }
        }
        Ok(())
    }

    fn push_ssh(&mut self, identity: ssh::Identity) {
        // One without a public key that age takes opens nothing that would be recorded.
        let recipient = ssh::Recipient::try_from(identity.clone()).map(|recipient| recipient.to_string());
        self.names.push(recipient.unwrap_or_default());
        self.all.push(Box::new(identity));
    }

    /// Whether a passphrase is among them.
    pub(crate) fn has_passphrase(&self) -> bool {
        self.names.len() < self.all.len()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
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
