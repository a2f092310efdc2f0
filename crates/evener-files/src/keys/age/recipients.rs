//! Recipients: the public keys that files are sealed for, and how a header shows that it is for them.

use age::ssh::ParseRecipientKeyError;
use age::{Identity, Recipient, scrypt, ssh, tag, tagpq, x25519};
use age_core::format::{FileKey, Stanza};
use age_core::secrecy::SecretString;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::facts::{at_line, recipient};
use super::identity_file::{AskPassphrase, Secret, entries, secrets};
use super::passphrase::{OneAtATime, WorkFactors, passphrase_identity};
use crate::error::FormatError;

/// Bytes of the SHA-256 of an SSH public key that stand in a stanza.
const SSH_TAG_BYTES: usize = 4;

/// The recipients that files are sealed for.
#[derive(Default)]
pub struct Recipients {
    all: Vec<Box<dyn Recipient + Send + Sync>>,
    /// One for each, in the same order.
    matchers: Vec<StanzaMatcher>,
}

/// What shows that a stanza of a header is for a recipient.
pub(crate) enum StanzaMatcher {
    /// It opens the stanza: the passphrase, or the identity that the recipient was made from.
    Opens(Box<dyn Identity + Send + Sync>),
    /// Type and first argument of the stanza, which follow from the public key.
    Tag { kind: &'static str, tag: String },
    /// The type of the stanza and nothing else: those for others look alike.
    Kind(&'static str),
}

impl Recipients {
    /// The recipient that `passphrase` is; stands alone.
    ///
    /// Each file then costs about a second of a core and 256 MiB while its key is derived, one file at a time
    /// in the whole process: meant for a few files.
    #[must_use]
    pub fn passphrase(passphrase: SecretString, factors: WorkFactors) -> Self {
        let mut recipient = scrypt::Recipient::new(passphrase.clone());
        recipient.set_work_factor(factors.new);
        let mut alone = Self::default();
        alone.push(
            OneAtATime { inner: recipient, factors },
            StanzaMatcher::Opens(Box::new(passphrase_identity(passphrase, factors))),
        );
        alone
    }

    /// Adds one recipient: `age1...`, `ssh-ed25519 ...` or `ssh-rsa ...`.
    ///
    /// # Errors
    ///
    /// [`FormatError::Recipient`] or [`FormatError::Unsupported`].
    pub fn add(&mut self, text: &str) -> Result<(), FormatError> {
        let text = text.trim();
        if let Ok(recipient) = text.parse::<x25519::Recipient>() {
            self.push(recipient, StanzaMatcher::Kind("X25519"));
        } else if let Ok(recipient) = text.parse::<tag::Recipient>() {
            self.push(recipient, StanzaMatcher::Kind("p256tag"));
        } else if let Ok(recipient) = text.parse::<tagpq::Recipient>() {
            self.push(recipient, StanzaMatcher::Kind("mlkem768p256tag"));
        } else {
            self.push_ssh(ssh_recipient(text)?);
        }
        Ok(())
    }

    fn push(&mut self, recipient: impl Recipient + Send + Sync + 'static, matcher: StanzaMatcher) {
        self.all.push(Box::new(recipient));
        self.matchers.push(matcher);
    }

    fn push_ssh(&mut self, recipient: ssh::Recipient) {
        let (kind, key) = match &recipient {
            ssh::Recipient::SshRsa(key, _) => ("ssh-rsa", key),
            ssh::Recipient::SshEd25519(key, _) => ("ssh-ed25519", key),
        };
        let tag = BASE64_STANDARD_NO_PAD.encode(&Sha256::digest(key)[..SSH_TAG_BYTES]);
        self.push(recipient, StanzaMatcher::Tag { kind, tag });
    }

    /// Adds every recipient of a recipients file: one a line, empty lines and those that start with `#` aside.
    ///
    /// # Errors
    ///
    /// As [`Recipients::add`], with the number of the line.
    pub fn add_file(&mut self, text: &str) -> Result<(), FormatError> {
        for (number, line) in entries(text) {
            self.add(line).map_err(|error| at_line(error, number))?;
        }
        Ok(())
    }

    /// Adds the recipients that belong to the identities of an identity file. `prompt` is called where the file
    /// itself is encrypted; an encrypted SSH key needs no passphrase here.
    ///
    /// # Errors
    ///
    /// As [`Identities::add_file`](super::Identities::add_file).
    pub fn add_identity_file(
        &mut self,
        bytes: &[u8],
        prompt: &mut AskPassphrase<'_>,
    ) -> Result<(), FormatError> {
        for secret in secrets(bytes, prompt)? {
            match secret {
                Secret::Native(identity) => {
                    self.push(identity.to_public(), StanzaMatcher::Opens(Box::new(identity)));
                }
                Secret::Ssh(identity) => {
                    self.push_ssh(ssh::Recipient::try_from(identity).map_err(ssh_recipient_error)?);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn all(&self) -> &[Box<dyn Recipient + Send + Sync>] {
        &self.all
    }

    pub(crate) fn matchers(&self) -> &[StanzaMatcher] {
        &self.matchers
    }
}

impl StanzaMatcher {
    /// Whether a stanza is for the recipient, or may be. Where the matcher opens it, the file key goes to `file_key`.
    pub(crate) fn matches(&self, stanza: &Stanza, file_key: &mut Option<FileKey>) -> bool {
        match self {
            Self::Opens(identity) => match identity.unwrap_stanza(stanza) {
                Some(Ok(key)) => {
                    *file_key = Some(key);
                    true
                }
                _ => false,
            },
            Self::Tag { kind, tag } => stanza.tag == *kind && stanza.args.first() == Some(tag),
            Self::Kind(kind) => stanza.tag == *kind,
        }
    }
}

fn ssh_recipient(text: &str) -> Result<ssh::Recipient, FormatError> {
    text.parse().map_err(|error| match error {
        ParseRecipientKeyError::Invalid(_) | ParseRecipientKeyError::Ignore => not_a_recipient(text),
        error => ssh_recipient_error(error),
    })
}

fn ssh_recipient_error(error: ParseRecipientKeyError) -> FormatError {
    match error {
        ParseRecipientKeyError::RsaModulusTooLarge => recipient("the RSA key has more than 4096 bits"),
        ParseRecipientKeyError::RsaModulusTooSmall => recipient("the RSA key has less than 2048 bits"),
        ParseRecipientKeyError::Unsupported(kind) => {
            FormatError::Unsupported(format!("SSH keys of type {kind}"))
        }
        _ => recipient("not an SSH public key"),
    }
}

/// Why `text` is no recipient; without the text, which may be a secret given by mistake.
fn not_a_recipient(text: &str) -> FormatError {
    let upper = text.to_ascii_uppercase();
    let plugin = text.strip_prefix("age1").and_then(|rest| rest.rsplit_once('1'));
    match plugin {
        _ if upper.starts_with("AGE-SECRET-KEY-") || upper.starts_with("AGE-PLUGIN-") => {
            recipient("this is an identity, which is secret: pass its file with -i")
        }
        Some(("pq", _)) => FormatError::Unsupported("post-quantum recipients age1pq1...".into()),
        Some((name, _)) if !name.is_empty() => {
            FormatError::Unsupported(format!("recipients of the age plugin {name:?}"))
        }
        _ => recipient("neither age1... nor an SSH public key"),
    }
}
