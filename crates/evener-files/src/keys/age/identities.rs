//! Identities: the secrets that open files, and new ones.

use std::sync::Arc;
use std::time::SystemTime;

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::date::rfc3339;
use super::facts::{identity, no_passphrase};
use super::file_key::{FileKey, Unwrap};
use super::identity_file::{AskPassphrase, Secret, secrets};
use super::native::{HybridIdentity, Passphrase, WorkFactors, X25519Identity};
use super::plugin::{Dialog, NoDialog, Plugin};
use super::ssh::{SshIdentity, SshSecret};
use super::stanza::Stanza;
use crate::error::FormatError;

/// The identities that open files. Keys are wiped when they are dropped.
pub struct Identities {
    all: Vec<Box<dyn Unwrap>>,
    /// What each is known by; a passphrase has no name.
    names: Vec<Zeroizing<String>>,
    dialog: Arc<dyn Dialog>,
}

impl Default for Identities {
    fn default() -> Self {
        Self::with_dialog(Arc::new(NoDialog))
    }
}

impl Identities {
    /// None yet; what plugins ask goes to `dialog`.
    #[must_use]
    pub fn with_dialog(dialog: Arc<dyn Dialog>) -> Self {
        Self { all: Vec::new(), names: Vec::new(), dialog }
    }

    /// Adds the identity that `passphrase` is. Files that ask for more than `factors` accept are refused.
    pub fn add_passphrase(&mut self, passphrase: SecretString, factors: WorkFactors) {
        self.all.push(Box::new(Passphrase::new(passphrase, factors)));
    }

    /// Adds the identity of a plugin that needs no data.
    ///
    /// # Errors
    ///
    /// [`FormatError::Identity`] where no plugin can be called so.
    pub fn add_plugin(&mut self, name: &str) -> Result<(), FormatError> {
        let plugin = Plugin::without_data(name, &self.dialog);
        let plugin = plugin.ok_or_else(|| identity("no plugin can have this name"))?;
        self.push(plugin.text().to_owned(), plugin);
        Ok(())
    }

    /// Adds the identities of a file: age identities one a line, or an SSH private key, or age identities
    /// encrypted by age with a passphrase. `prompt` is called for encrypted SSH keys and files.
    ///
    /// # Errors
    ///
    /// [`FormatError::Identity`] or [`FormatError::Unsupported`]; no text of the file is repeated.
    pub fn add_file(&mut self, bytes: &[u8], prompt: &mut AskPassphrase<'_>) -> Result<(), FormatError> {
        for secret in secrets(bytes, prompt, &self.dialog)? {
            match secret {
                Secret::X25519(identity) => self.push(identity.recipient().text(), identity),
                Secret::Hybrid(identity) => self.push(identity.recipient().text(), identity),
                Secret::Plugin(plugin) => self.push(plugin.text().to_owned(), plugin),
                Secret::Ssh(SshSecret::Open(identity)) => self.push_ssh(identity),
                Secret::Ssh(SshSecret::Encrypted(key)) => {
                    self.push_ssh(key.decrypted(&prompt("the SSH key").ok_or_else(no_passphrase)?)?);
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, name: String, identity: impl Unwrap + 'static) {
        self.names.push(Zeroizing::new(name));
        self.all.push(Box::new(identity));
    }

    fn push_ssh(&mut self, identity: SshIdentity) {
        // One without a public key that age takes opens nothing that would be recorded.
        let name = identity.recipient().map(|recipient| recipient.text());
        self.push(name.unwrap_or_default(), identity);
    }

    /// Whether a passphrase is among them.
    pub(crate) fn has_passphrase(&self) -> bool {
        self.names.len() < self.all.len()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| name.as_str())
    }

    /// The key of the file that has these stanzas.
    ///
    /// # Errors
    ///
    /// [`FormatError::NoKeyFits`]; where an identity could not look, its reason.
    pub(crate) fn file_key(&self, stanzas: &[Stanza]) -> Result<FileKey, FormatError> {
        let mut kept_from_looking = None;
        for identity in &self.all {
            match identity.unwrap(stanzas) {
                Ok(Some(file_key)) => return Ok(file_key),
                Ok(None) => {}
                Err(error @ FormatError::Header { .. }) => return Err(error),
                Err(error) => kept_from_looking = kept_from_looking.or(Some(error)),
            }
        }
        Err(kept_from_looking.unwrap_or_else(|| self.no_key_fits(stanzas)))
    }

    fn no_key_fits(&self, stanzas: &[Stanza]) -> FormatError {
        let tried = listed(self.all.iter().map(|identity| identity.name()), "no identity");
        let is_anonymous = |kind: &str| matches!(kind, "X25519" | "mlkem768x25519" | "scrypt");
        let name = |stanza: &Stanza| match (&*stanza.kind, stanza.args.first()) {
            ("scrypt", _) => "a passphrase".to_owned(),
            (kind, Some(tag)) if !is_anonymous(kind) && tag.len() <= 12 => format!("{kind} {tag}"),
            (kind, _) => kind.chars().take(40).collect(),
        };
        let there =
            listed(stanzas.iter().filter(|stanza| !stanza.kind.ends_with("-grease")).map(name), "nobody");
        FormatError::NoKeyFits { facts: format!(": tried {tried}; the file is for {there}") }
    }
}

/// Some names, those that stand there several times with their number, and how many more there are.
fn listed(names: impl Iterator<Item = String>, none: &str) -> String {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for name in names {
        match counted.iter_mut().find(|row| row.0 == name) {
            Some(row) => row.1 += 1,
            None => counted.push((name, 1)),
        }
    }
    let shown = |(name, count): &(String, usize)| {
        if *count == 1 { name.clone() } else { format!("{count} x {name}") }
    };
    let mut text: Vec<String> = counted.iter().take(NAMES_MAX).map(shown).collect();
    if let Some(more @ 1..) = counted.len().checked_sub(NAMES_MAX) {
        text.push(format!("{more} more"));
    }
    if text.is_empty() { none.to_owned() } else { text.join(", ") }
}

/// Names that are told of many.
const NAMES_MAX: usize = 8;

/// A new identity and the recipient that belongs to it.
pub struct NewIdentity {
    /// An identity file, as `age-keygen` writes it: to be stored where only its owner can read it.
    pub file: Zeroizing<String>,
    /// `age1...`
    pub recipient: String,
}

/// Makes an age identity, against quantum computers or not; `now` goes into a comment.
///
/// # Errors
///
/// [`FormatError::Library`] where the kernel gives no random bytes.
pub fn generate_identity(now: SystemTime, is_post_quantum: bool) -> Result<NewIdentity, FormatError> {
    let (secret, recipient) = if is_post_quantum {
        let identity = HybridIdentity::generate()?;
        (identity.text(), identity.recipient().text())
    } else {
        let identity = X25519Identity::generate()?;
        (identity.text(), identity.recipient().text())
    };
    let created = rfc3339(now);
    let file = format!("# created: {created}\n# public key: {recipient}\n{}\n", *secret);
    Ok(NewIdentity { file: Zeroizing::new(file), recipient })
}
