//! Recipients: the public keys that files are sealed for, and how a header shows that it is for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::facts::{at_line, identity, no_passphrase, recipient};
use super::file_key::{FileKey, Unwrap, Wrap};
use super::header::Header;
use super::identity_file::{AskPassphrase, Secret, secrets};
use super::native::{
    HybridRecipient, Passphrase, TagPqRecipient, TagRecipient, WorkFactors, X25519Recipient,
};
use super::plugin::{Dialog, NoDialog, Plugin};
use super::ssh::{NoRecipient, SshRecipient, SshSecret};
use super::stanza::Stanza;
use crate::error::FormatError;
use crate::keys::text::{decoded, entries};

/// The recipients that files are sealed for.
pub struct Recipients {
    all: Vec<Box<dyn Wrap>>,
    /// One for each, in the same order.
    matchers: Vec<StanzaMatcher>,
    /// Each as text, where it has one.
    texts: Vec<Option<String>>,
    /// What each is known by; a passphrase has no name.
    names: Vec<Zeroizing<String>>,
    dialog: Arc<dyn Dialog>,
}

/// What shows that a stanza of a header is for a recipient.
pub(crate) enum StanzaMatcher {
    /// It opens the stanza: the passphrase, or the identity that the recipient was made from.
    Opens(Box<dyn Unwrap>),
    /// Type and first argument of the stanza, which follow from the public key.
    Tag { kind: &'static str, tag: String },
    /// What the stanza says of itself, with the public key.
    Named(Box<dyn Fn(&Stanza) -> bool + Send + Sync>),
    /// The type of the stanza and nothing else: those for others look alike.
    Kind(&'static str),
    /// Nothing: stanzas of plugins.
    Any,
}

/// A line of a recipients file that holds a key which files cannot be sealed for.
#[derive(Debug)]
pub struct Unusable {
    /// The number of the line, from 1.
    pub line: usize,
    /// Why.
    pub error: FormatError,
}

impl Default for Recipients {
    fn default() -> Self {
        Self::with_dialog(Arc::new(NoDialog))
    }
}

impl Recipients {
    /// None yet; what plugins ask goes to `dialog`.
    #[must_use]
    pub fn with_dialog(dialog: Arc<dyn Dialog>) -> Self {
        Self { all: Vec::new(), matchers: Vec::new(), texts: Vec::new(), names: Vec::new(), dialog }
    }

    /// The recipient that `passphrase` is; stands alone.
    ///
    /// Each file then costs about a second of a core and 256 MiB while its key is derived, one file at a time
    /// in the whole process: meant for a few files.
    #[must_use]
    pub fn passphrase(passphrase: SecretString, factors: WorkFactors) -> Self {
        let mut alone = Self::default();
        let passphrase = Passphrase::new(passphrase, factors);
        alone.push_nameless(passphrase.clone(), StanzaMatcher::Opens(Box::new(passphrase)), None);
        alone
    }

    /// Adds one recipient: `age1...`, `ssh-ed25519 ...` or `ssh-rsa ...`.
    ///
    /// # Errors
    ///
    /// [`FormatError::Recipient`] or [`FormatError::Unsupported`].
    pub fn add(&mut self, text: &str) -> Result<(), FormatError> {
        self.try_add(text.trim()).map_err(|no_recipient| match no_recipient {
            NoRecipient::NoKey => not_a_recipient(text.trim()),
            NoRecipient::Unusable(error) => error,
        })
    }

    fn try_add(&mut self, text: &str) -> Result<(), NoRecipient> {
        if let Some(recipient) = X25519Recipient::parse(text) {
            self.push(recipient, StanzaMatcher::Kind("X25519"), Some(text.to_owned()));
        } else if let Some(recipient) = HybridRecipient::parse(text) {
            self.push(recipient, StanzaMatcher::Kind("mlkem768x25519"), Some(text.to_owned()));
        } else if let Some(recipient) = TagRecipient::parse(text) {
            let named = recipient.clone();
            let matcher = StanzaMatcher::Named(Box::new(move |stanza| named.is_named_by(stanza)));
            self.push(recipient, matcher, Some(text.to_owned()));
        } else if let Some(recipient) = TagPqRecipient::parse(text) {
            let named = recipient.clone();
            let matcher = StanzaMatcher::Named(Box::new(move |stanza| named.is_named_by(stanza)));
            self.push(recipient, matcher, Some(text.to_owned()));
        } else if let Some(plugin) = plugin(text, &self.dialog) {
            self.push(plugin, StanzaMatcher::Any, Some(text.to_owned()));
        } else {
            self.push_ssh(SshRecipient::parse(text)?);
        }
        Ok(())
    }

    fn push(&mut self, recipient: impl Wrap + 'static, matcher: StanzaMatcher, text: Option<String>) {
        self.names.push(Zeroizing::new(text.clone().unwrap_or_default()));
        self.push_nameless(recipient, matcher, text);
    }

    /// Adds a plugin's recipient that has no text but the one that the plugin gets.
    fn push_plugin(&mut self, plugin: Plugin) {
        self.names.push(Zeroizing::new(plugin.text().to_owned()));
        self.push_nameless(plugin, StanzaMatcher::Any, None);
    }

    fn push_nameless(
        &mut self,
        recipient: impl Wrap + 'static,
        matcher: StanzaMatcher,
        text: Option<String>,
    ) {
        self.all.push(Box::new(recipient));
        self.matchers.push(matcher);
        self.texts.push(text);
    }

    fn push_ssh(&mut self, recipient: SshRecipient) {
        let (kind, tag) = recipient.stanza_start();
        let text = recipient.text();
        self.push(recipient, StanzaMatcher::Tag { kind, tag }, Some(text));
    }

    /// Adds the recipient that the identity of a plugin without data is.
    ///
    /// # Errors
    ///
    /// [`FormatError::Identity`] where no plugin can be called so.
    pub fn add_plugin(&mut self, name: &str) -> Result<(), FormatError> {
        let plugin = Plugin::without_data(name, &self.dialog);
        let plugin = plugin.ok_or_else(|| identity("no plugin can have this name"))?;
        self.push_plugin(plugin);
        Ok(())
    }

    /// Adds every recipient of a recipients file: one a line, empty lines and those that start with `#` aside. Returns the
    /// SSH keys that files cannot be sealed for; the others are served.
    ///
    /// # Errors
    ///
    /// As [`Recipients::add`], with the number of the line; [`FormatError::Recipient`] where none can be used.
    pub fn add_file(&mut self, bytes: &[u8]) -> Result<Vec<Unusable>, FormatError> {
        let text = decoded(bytes).ok_or_else(|| recipient("the file is not text"))?;
        let (mut unusable, mut added) = (Vec::new(), false);
        for (line, text) in entries(&text) {
            match self.try_add(text) {
                Ok(()) => added = true,
                Err(NoRecipient::Unusable(error)) => unusable.push(Unusable { line, error }),
                Err(NoRecipient::NoKey) => return Err(at_line(not_a_recipient(text), line)),
            }
        }
        if added { Ok(unusable) } else { Err(none_in_file(unusable)) }
    }

    /// Adds the recipients that belong to the identities of an identity file. `prompt` is called where the file
    /// itself is encrypted; an encrypted SSH key in OpenSSH's form needs no passphrase here.
    ///
    /// # Errors
    ///
    /// As [`Identities::add_file`](super::Identities::add_file).
    pub fn add_identity_file(
        &mut self,
        bytes: &[u8],
        prompt: &mut AskPassphrase<'_>,
    ) -> Result<(), FormatError> {
        for secret in secrets(bytes, prompt, &self.dialog)? {
            match secret {
                Secret::X25519(identity) => {
                    let (recipient, text) = (identity.recipient(), identity.recipient().text());
                    self.push(recipient, StanzaMatcher::Opens(Box::new(identity)), Some(text));
                }
                Secret::Hybrid(identity) => {
                    let (recipient, text) = (identity.recipient(), identity.recipient().text());
                    self.push(recipient, StanzaMatcher::Opens(Box::new(identity)), Some(text));
                }
                Secret::Plugin(plugin) => self.push_plugin(plugin),
                Secret::Ssh(SshSecret::Open(identity)) => self.push_ssh(identity.recipient()?),
                Secret::Ssh(SshSecret::Encrypted(key)) => self.push_ssh(match key.recipient() {
                    Some(recipient) => recipient.clone(),
                    None => key.decrypted(&prompt("the SSH key").ok_or_else(no_passphrase)?)?.recipient()?,
                }),
            }
        }
        Ok(())
    }

    /// Whether a passphrase stands for them.
    pub(crate) fn is_passphrase(&self) -> bool {
        self.names.is_empty() && !self.all.is_empty()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| name.as_str())
    }

    /// Whether an identity or a passphrase at hand opens what is sealed for them.
    pub(crate) fn opens_its_own(&self) -> bool {
        self.matchers.iter().any(|matcher| matches!(matcher, StanzaMatcher::Opens(_)))
    }

    /// The recipients as text, one each; `None` where a plugin knows it alone.
    #[must_use]
    pub fn texts(&self) -> &[Option<String>] {
        &self.texts
    }

    /// The header of a new file for all of them.
    pub(crate) fn header(&self, file_key: &FileKey) -> Result<Header, FormatError> {
        let (mut stanzas, mut labels): (Vec<Stanza>, Option<BTreeSet<String>>) = (Vec::new(), None);
        for one in &self.all {
            let wrapped = one.wrap(file_key)?;
            if labels.as_ref().is_some_and(|labels| *labels != wrapped.labels) {
                return Err(recipient(
                    "these cannot be combined in one file: post-quantum ones with others, or a passphrase with any",
                ));
            }
            labels = Some(wrapped.labels);
            stanzas.extend(wrapped.stanzas);
        }
        if stanzas.is_empty() { Err(recipient("none given")) } else { Ok(Header::new(stanzas)) }
    }

    pub(crate) fn matchers(&self) -> &[StanzaMatcher] {
        &self.matchers
    }
}

fn none_in_file(unusable: Vec<Unusable>) -> FormatError {
    match unusable.into_iter().next() {
        Some(Unusable { line, error }) => at_line(error, line),
        None => recipient("the file holds none"),
    }
}

/// The plugin of a recipient; age's own kinds, which look like plugins', are none of them.
fn plugin(text: &str, dialog: &Arc<dyn Dialog>) -> Option<Plugin> {
    let is_native = ["age1pq1", "age1tag1", "age1tagpq1"].iter().any(|start| text.starts_with(start));
    (!is_native).then(|| Plugin::recipient(text, dialog)).flatten()
}

impl StanzaMatcher {
    /// Whether a stanza is for the recipient, or may be. Where the matcher opens it, the file key goes to `file_key`.
    pub(crate) fn matches(&self, stanza: &Stanza, file_key: &mut Option<FileKey>) -> bool {
        match self {
            Self::Opens(identity) => match identity.unwrap(std::slice::from_ref(stanza)) {
                Ok(Some(key)) => {
                    *file_key = Some(key);
                    true
                }
                _ => false,
            },
            Self::Tag { kind, tag } => stanza.kind == *kind && stanza.args.first() == Some(tag),
            Self::Named(names) => names(stanza),
            Self::Kind(kind) => stanza.kind == *kind,
            Self::Any => true,
        }
    }

    /// Whether others' stanzas may match too.
    pub(crate) const fn is_vague(&self) -> bool {
        matches!(self, Self::Kind(_) | Self::Any)
    }
}

/// Why `text` is no recipient; without the text, which may be a secret given by mistake.
fn not_a_recipient(text: &str) -> FormatError {
    let upper = text.to_ascii_uppercase();
    if upper.starts_with("AGE-SECRET-KEY-") || upper.starts_with("AGE-PLUGIN-") {
        recipient("this is an identity, which is secret: pass its file with -i")
    } else {
        recipient("neither age1... nor an SSH public key")
    }
}
