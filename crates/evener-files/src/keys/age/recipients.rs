//! Who a file in the age format is for, and who may open it: recipients, identities, passphrases.
//!
//! Text as age and rage take it -> [`Recipients`] (for sealing) or [`Identities`] (for opening). Plugins are not
//! called.

use std::collections::HashSet;
use std::io::Read as _;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use age::ssh::{ParseRecipientKeyError, UnsupportedKey};
use age::{DecryptError, Decryptor, EncryptError, Identity, Recipient, scrypt, ssh, tag, tagpq, x25519};
use age_core::format::{FileKey, Stanza};
use age_core::secrecy::{ExposeSecret as _, SecretString};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::armor::dearmored;
use crate::error::FormatError;

/// scrypt's work factor for new files, as in age: 2^18, about a second and 256 MiB of memory.
const WORK_FACTOR: u8 = 18;
/// The highest that is read, as in age: 2^22, 4 GiB.
const WORK_FACTOR_MAX: u8 = 22;
/// Bytes of the SHA-256 of an SSH public key that stand in a stanza.
const SSH_TAG_BYTES: usize = 4;

/// Asks the user for the passphrase of what the argument names; `None` where it cannot be had.
pub type AskPassphrase<'a> = dyn FnMut(&str) -> Option<SecretString> + 'a;

/// Who files are sealed for.
#[derive(Default)]
pub struct Recipients {
    all: Vec<Box<dyn Recipient + Send + Sync>>,
    /// One for each, in the same order.
    matchers: Vec<StanzaMatcher>,
}

/// What tells that a stanza of a header is for a recipient.
pub(crate) enum StanzaMatcher {
    /// It opens the stanza: the passphrase, or the identity that the recipient was made from.
    Opens(Box<dyn Identity + Send + Sync>),
    /// Type and first argument of the stanza, which follow from the public key.
    Tag { kind: &'static str, tag: String },
    /// The type of the stanza and nothing else: those for others look alike.
    Kind(&'static str),
}

impl Recipients {
    /// Anyone who knows `passphrase`; stands alone.
    ///
    /// Each file then costs about a second of a core and 256 MiB while its key is derived, one file at a time
    /// in the whole process: meant for a few files.
    #[must_use]
    pub fn passphrase(passphrase: SecretString) -> Self {
        let mut recipient = scrypt::Recipient::new(passphrase.clone());
        recipient.set_work_factor(WORK_FACTOR);
        let mut alone = Self::default();
        alone.push(OneAtATime(recipient), StanzaMatcher::Opens(Box::new(passphrase_identity(passphrase))));
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

    /// Adds the recipients that belong to the identities of an identity file. `ask` is called where the file
    /// itself is encrypted; an encrypted SSH key needs no passphrase here.
    ///
    /// # Errors
    ///
    /// As [`Identities::add_file`].
    pub fn add_identity_file(
        &mut self,
        bytes: &[u8],
        ask: &mut AskPassphrase<'_>,
    ) -> Result<(), FormatError> {
        for secret in secrets(bytes, ask)? {
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

/// Who opens files. Keys are wiped when they are dropped, as far as the crate `age` does.
#[derive(Default)]
pub struct Identities {
    all: Vec<Box<dyn Identity + Send + Sync>>,
}

impl Identities {
    /// Adds anyone who knows `passphrase`.
    pub fn add_passphrase(&mut self, passphrase: SecretString) {
        self.all.push(Box::new(passphrase_identity(passphrase)));
    }

    /// Adds the identities of a file: age identities one a line, or an SSH private key, or age identities
    /// encrypted by age with a passphrase. `ask` is called for encrypted SSH keys and files.
    ///
    /// # Errors
    ///
    /// [`FormatError::Identity`] or [`FormatError::Unsupported`]; no text of the file is repeated.
    pub fn add_file(&mut self, bytes: &[u8], ask: &mut AskPassphrase<'_>) -> Result<(), FormatError> {
        for secret in secrets(bytes, ask)? {
            match secret {
                Secret::Native(identity) => self.all.push(Box::new(identity)),
                Secret::Ssh(ssh::Identity::Encrypted(key)) => {
                    let passphrase = ask("the SSH key").ok_or_else(no_passphrase)?;
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

// ---- identity files

enum Secret {
    Native(x25519::Identity),
    Ssh(ssh::Identity),
}

fn secrets(bytes: &[u8], ask: &mut AskPassphrase<'_>) -> Result<Vec<Secret>, FormatError> {
    if crate::armor::is_armored(bytes) || bytes.starts_with(b"age-encryption.org/") {
        return native_secrets(&decrypted_file(bytes, ask)?);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| identity("the file is not text"))?;
    if text.trim_start().starts_with("-----BEGIN") {
        return Ok(vec![Secret::Ssh(ssh_secret(text.trim_start())?)]);
    }
    native_secrets(text)
}

fn native_secrets(text: &str) -> Result<Vec<Secret>, FormatError> {
    let parse = |(number, line): (usize, &str)| match line.parse::<x25519::Identity>() {
        Ok(identity) => Ok(Secret::Native(identity)),
        Err(_) => Err(at_line(not_an_identity(line), number)),
    };
    let secrets: Vec<Secret> = entries(text).map(parse).collect::<Result<_, _>>()?;
    if secrets.is_empty() { Err(identity("the file holds none")) } else { Ok(secrets) }
}

fn not_an_identity(line: &str) -> FormatError {
    if line.starts_with("AGE-PLUGIN-") {
        FormatError::Unsupported("identities of age plugins".into())
    } else if line.starts_with("AGE-SECRET-KEY-PQ-") {
        FormatError::Unsupported("post-quantum age identities".into())
    } else {
        identity("not an age identity")
    }
}

fn ssh_secret(text: &str) -> Result<ssh::Identity, FormatError> {
    let parsed = ssh::Identity::from_buffer(text.as_bytes(), None);
    match parsed.map_err(|_| identity("not an SSH private key that age knows"))? {
        ssh::Identity::Unsupported(key) => Err(FormatError::Unsupported(unsupported_ssh_key(&key))),
        known => Ok(known),
    }
}

fn unsupported_ssh_key(key: &UnsupportedKey) -> String {
    match key {
        UnsupportedKey::EncryptedPem => {
            "SSH keys in PEM form with a passphrase (ssh-keygen -p converts them)".into()
        }
        UnsupportedKey::EncryptedSsh(cipher) => format!("SSH keys encrypted with {cipher}"),
        UnsupportedKey::Hardware(kind) | UnsupportedKey::Type(kind) => format!("SSH keys of type {kind}"),
    }
}

/// The text of an identity file that is itself an age file under a passphrase.
fn decrypted_file(bytes: &[u8], ask: &mut AskPassphrase<'_>) -> Result<Zeroizing<String>, FormatError> {
    let damaged = |_| identity("the encrypted file is damaged");
    let not_mine = |error: DecryptError| match error {
        DecryptError::DecryptionFailed => identity("wrong passphrase for the encrypted file"),
        _ => identity("the encrypted file is damaged"),
    };
    let decryptor = Decryptor::new(dearmored(bytes).map_err(damaged)?).map_err(not_mine)?;
    if !decryptor.is_scrypt() {
        return Err(identity("the encrypted file is not encrypted with a passphrase"));
    }
    let mut passphrase = Identities::default();
    passphrase.add_passphrase(ask("the identity file").ok_or_else(no_passphrase)?);
    let keys = passphrase.all.iter().map(|identity| &**identity as &dyn Identity);
    let mut text = Zeroizing::new(String::new());
    decryptor.decrypt(keys).map_err(not_mine)?.read_to_string(&mut text).map_err(damaged)?;
    Ok(text)
}

/// Lines that say something, with their numbers from 1.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(place, line)| (place + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

// ---- recipients

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

// ---- passphrases

/// Serves one caller after the other, because each takes hundreds of MiB.
struct OneAtATime<T>(T);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn passphrase_identity(passphrase: SecretString) -> OneAtATime<scrypt::Identity> {
    let mut identity = scrypt::Identity::new(passphrase);
    identity.set_max_work_factor(WORK_FACTOR_MAX);
    OneAtATime(identity)
}

impl<T: Recipient> Recipient for OneAtATime<T> {
    fn wrap_file_key(&self, file_key: &FileKey) -> Result<(Vec<Stanza>, HashSet<String>), EncryptError> {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.wrap_file_key(file_key)
    }
}

impl<T: Identity> Identity for OneAtATime<T> {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, DecryptError>> {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.unwrap_stanza(stanza)
    }
}

// ---- sentences and dates

fn identity(fact: &str) -> FormatError {
    FormatError::Identity(fact.into())
}

fn recipient(fact: &str) -> FormatError {
    FormatError::Recipient(fact.into())
}

fn no_passphrase() -> FormatError {
    identity("it is encrypted, and no passphrase was given")
}

fn at_line(error: FormatError, number: usize) -> FormatError {
    let at = |fact: String| format!("line {number}: {fact}");
    match error {
        FormatError::Recipient(fact) => FormatError::Recipient(at(fact)),
        FormatError::Identity(fact) => FormatError::Identity(at(fact)),
        FormatError::Unsupported(fact) => FormatError::Unsupported(at(fact)),
        other => other,
    }
}

/// A time as `2026-11-21T17:57:00Z`; times before 1970 as 1970, times after 9999 as 9999.
fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()).min(253_402_300_799);
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of the day `days` after 1970-01-01, in the Gregorian calendar.
fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in months {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @SECONDS +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_283_820, "2026-11-21T17:57:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_735_603_200, "2024-12-31T00:00:00Z"),
            (1 << 40, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
