//! Plugins: programs `age-plugin-NAME` that wrap and unwrap file keys, run as age runs them (<https://c2sp.org/age-plugin>).
//!
//! A recipient `age1NAME1...` or an identity `AGE-PLUGIN-NAME-1...` -> a `Process` for each file -> stanzas to and fro -> a file key or
//! stanzas. What a plugin asks the user goes to the [`Dialog`].

mod conversation;
mod process;

use std::sync::{Arc, Mutex, PoisonError};

use secrecy::SecretString;
use zeroize::Zeroizing;

use self::conversation::{unwrap, wrap};
use super::bech32;
use super::file_key::{FileKey, Unwrap, Wrap, Wrapped};
use super::stanza::Stanza;
use crate::error::FormatError;

/// Where a plugin's questions go.
pub trait Dialog: Send + Sync {
    /// Shows a message.
    fn message(&self, plugin: &str, text: &str);

    /// Asks for a value; `None` where it cannot be had.
    fn ask(&self, plugin: &str, prompt: &str, is_secret: bool) -> Option<SecretString>;

    /// Asks for a decision between the first word and the second, if there is one; `None` where it cannot be had.
    fn confirm(&self, plugin: &str, prompt: &str, yes: &str, no: Option<&str>) -> Option<bool>;
}

/// One plugin is asked after the other: each may ask the user, or has one token to be touched.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Answers nothing.
pub(super) struct NoDialog;

impl Dialog for NoDialog {
    fn message(&self, _: &str, _: &str) {}

    fn ask(&self, _: &str, _: &str, _: bool) -> Option<SecretString> {
        None
    }

    fn confirm(&self, _: &str, _: &str, _: &str, _: Option<&str>) -> Option<bool> {
        None
    }
}

/// A recipient or an identity of a plugin's, as text.
#[derive(Clone)]
pub(super) struct Plugin {
    name: String,
    text: Zeroizing<String>,
    is_identity: bool,
    dialog: Arc<dyn Dialog>,
}

impl Plugin {
    /// The recipient `age1NAME1...`; `None` where the text is none.
    pub(super) fn recipient(text: &str, dialog: &Arc<dyn Dialog>) -> Option<Self> {
        let (prefix, _) = bech32::decode(text)?;
        let name = prefix.strip_prefix("age1").filter(|name| is_name(name))?;
        Some(Self::new(name, text, false, dialog))
    }

    /// The identity `AGE-PLUGIN-NAME-1...`; `None` where the text is none.
    pub(super) fn identity(text: &str, dialog: &Arc<dyn Dialog>) -> Option<Self> {
        let (prefix, _) = bech32::decode(text)?;
        let name = prefix.strip_prefix("age-plugin-")?.strip_suffix('-').filter(|name| is_name(name))?;
        Some(Self::new(name, text, true, dialog))
    }

    /// The identity of a plugin that needs no data; `None` where `name` cannot be one.
    pub(super) fn without_data(name: &str, dialog: &Arc<dyn Dialog>) -> Option<Self> {
        let name = Some(name.to_ascii_lowercase()).filter(|name| is_name(name))?;
        let text = bech32::encode(&format!("age-plugin-{name}-"), b"").to_ascii_uppercase();
        Some(Self::new(&name, &text, true, dialog))
    }

    /// What the plugin gets: secret where it is an identity.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn new(name: &str, text: &str, is_identity: bool, dialog: &Arc<dyn Dialog>) -> Self {
        let text = Zeroizing::new(text.to_owned());
        Self { name: name.to_owned(), text, is_identity, dialog: Arc::clone(dialog) }
    }
}

/// Whether a program `age-plugin-NAME` may be called so: no path, nothing that a shell or terminal takes for something else.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte))
}

impl Wrap for Plugin {
    fn wrap(&self, file_key: &FileKey) -> Result<Wrapped, FormatError> {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        wrap(self, file_key)
    }
}

impl Unwrap for Plugin {
    fn unwrap(&self, stanzas: &[Stanza]) -> Result<Option<FileKey>, FormatError> {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        unwrap(self, stanzas)
    }

    fn name(&self) -> String {
        format!("the plugin {}", self.name)
    }
}
