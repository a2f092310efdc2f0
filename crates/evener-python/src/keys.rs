//! Keys as Python gives them, for one call: made into what files are sealed or opened with, and wiped with it.
//!
//! A key is a path (`str` or path-like), which is read here into memory that is wiped, or the contents themselves (`bytes`), which are
//! Python's to keep or to lose. No object of Python's ever holds one.

use std::fs::File;
use std::io::Read as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use evener_fd::open_named;
use evener_fd::text::PathDisplay;
use evener_files::FormatError;
use evener_files::age_keys::{Identities, Recipients, WorkFactors, is_age_file, opened_under};
use evener_files::format::openssl_enc::{self, Kdf, OpensslEnc};
use evener_files::format::tink::Tink;
use evener_files::format::{Opener, Sealer};
use evener_files::keyset::{KeyEncryption, Keyset};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use rustix::fs::OFlags;
use secrecy::SecretString;
use zeroize::Zeroizing;

use crate::exceptions::{self, Kind};
use crate::words::one_of;

/// A key file: its contents, or where it lies.
#[derive(FromPyObject)]
pub(crate) enum Secret {
    Contents(PyBackedBytes),
    Path(PathBuf),
}

/// A passphrase: text, or the bytes of one.
#[derive(FromPyObject)]
pub(crate) enum Passphrase {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
}

/// What the user named, as `evener/_arguments.py` gathers it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct KeyArguments {
    key: Option<Secret>,
    key_passphrase: Option<Passphrase>,
    key_encryption: Option<Secret>,
    associated_data: PyBackedBytes,
    identity: Vec<Secret>,
    recipient: Vec<PyBackedStr>,
    recipients_file: Vec<Secret>,
    passphrase: Option<Passphrase>,
    work_factor: Option<u8>,
    work_factor_max: Option<u8>,
    format: Option<PyBackedStr>,
    cipher: Option<PyBackedStr>,
    digest: Option<PyBackedStr>,
    kdf: Option<PyBackedStr>,
    iterations: Option<NonZeroU32>,
}

/// The formats of encrypted files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Age,
    Tink,
    Openssl,
}

impl Format {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Tink => "tink",
            Self::Openssl => "openssl",
        }
    }

    /// What names of encrypted files end in.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Age => ".age",
            Self::Tink => ".tink",
            Self::Openssl => ".enc",
        }
    }
}

impl KeyArguments {
    /// The format that keys and words agree on.
    ///
    /// # Errors
    ///
    /// `ValueError` where they do not, or no key is there, or keys of several kinds.
    pub(crate) fn format(&self) -> PyResult<Format> {
        let has_age =
            !(self.identity.is_empty() && self.recipient.is_empty() && self.recipients_file.is_empty());
        let kinds = [self.key.is_some(), has_age, self.passphrase.is_some()];
        match kinds.iter().filter(|kind| **kind).count() {
            0 => {
                return Err(refused(
                    "a key is needed: key, identity, recipient, recipients_file or passphrase",
                ));
            }
            1 => {}
            _ => {
                return Err(refused(
                    "keys of one kind at a time: key, or identity and recipient, or passphrase",
                ));
            }
        }
        let by_key = if self.key.is_some() { Format::Tink } else { Format::Age };
        let formats = [Format::Age, Format::Tink, Format::Openssl].map(|format| (format.name(), format));
        let format = match &self.format {
            Some(word) => one_of("format", word, &formats)?,
            None => by_key,
        };
        match format {
            Format::Tink if self.key.is_none() => {
                return Err(refused("the format tink takes its key from key="));
            }
            Format::Age if self.key.is_some() => return Err(refused("the format age takes no key=")),
            Format::Openssl if self.passphrase.is_none() => {
                return Err(refused("the format openssl takes its key from passphrase="));
            }
            _ => {}
        }
        if !self.associated_data.is_empty() && format != Format::Tink {
            return Err(refused(
                "associated_data goes with key= only: the other formats have no place for it",
            ));
        }
        let of_openssl =
            [self.cipher.is_some(), self.digest.is_some(), self.kdf.is_some(), self.iterations.is_some()];
        if of_openssl.contains(&true) && format != Format::Openssl {
            return Err(refused("cipher, digest, kdf and iterations go with the format openssl only"));
        }
        if self.key_passphrase.is_some() && self.key.is_none() && self.identity.is_empty() {
            return Err(refused("key_passphrase goes with key= or identity= only"));
        }
        if self.key_encryption.is_some() && self.key.is_none() {
            return Err(refused("key_encryption goes with key= only"));
        }
        Ok(format)
    }

    /// What new files are sealed with.
    ///
    /// # Errors
    ///
    /// An exception that names the argument or key that does not fit.
    pub(crate) fn sealer(&self) -> PyResult<Sealer> {
        match self.format()? {
            Format::Tink => self.tink().map(Sealer::Tink),
            Format::Openssl => self.openssl().map(Sealer::OpensslEnc),
            Format::Age => match &self.passphrase {
                Some(passphrase) => {
                    Ok(Sealer::Age(Recipients::passphrase(passphrase.secret()?, self.work_factors()?)))
                }
                None => self.recipients().map(Sealer::Age),
            },
        }
    }

    /// What files are opened with.
    ///
    /// # Errors
    ///
    /// As [`KeyArguments::sealer`].
    pub(crate) fn opener(&self) -> PyResult<Opener> {
        if !(self.recipient.is_empty() && self.recipients_file.is_empty()) {
            return Err(refused(
                "recipient and recipients_file are for encryption: decryption takes identity",
            ));
        }
        match self.format()? {
            Format::Tink => self.tink().map(Opener::Tink),
            Format::Openssl => self.openssl().map(Opener::OpensslEnc),
            Format::Age => self.identities().map(Opener::Age),
        }
    }

    fn tink(&self) -> PyResult<Tink> {
        let file = self.key.as_ref().ok_or_else(|| refused("a keyset is needed: key="))?;
        let (place, bytes) = (file.place("the keyset"), file.read()?);
        let at = |error: FormatError| exceptions::at(&place, &error);
        let keyset = if is_age_file(&bytes) {
            let Some(passphrase) = &self.key_passphrase else {
                return Err(
                    Kind::InvalidKey.exception(&format!("{place}: is under a passphrase: key_passphrase="))
                );
            };
            Keyset::parse(&opened_under(&passphrase.secret()?, &bytes).map_err(at)?).map_err(at)?
        } else if let Some(kek) = &self.key_encryption {
            let kek_at = |error: FormatError| exceptions::at(&kek.place("the key encryption keyset"), &error);
            Keyset::parse_encrypted(&bytes, &KeyEncryption::parse(&kek.read()?).map_err(kek_at)?)
                .map_err(at)?
        } else {
            Keyset::parse(&bytes).map_err(at)?
        };
        Ok(Tink::new(keyset, self.associated_data.to_vec()))
    }

    fn openssl(&self) -> PyResult<OpensslEnc> {
        let kdf = match self.kdf.as_deref() {
            None => Kdf::Pbkdf2(self.iterations.unwrap_or(openssl_enc::ITERATIONS)),
            Some(word) => one_of(
                "kdf",
                word,
                &[
                    ("pbkdf2", Kdf::Pbkdf2(self.iterations.unwrap_or(openssl_enc::ITERATIONS))),
                    ("legacy", Kdf::Legacy),
                ],
            )?,
        };
        let passphrase = self.passphrase.as_ref().ok_or_else(|| refused("a passphrase is needed"))?;
        let (cipher, digest) = (self.cipher.as_deref(), self.digest.as_deref());
        let passphrase = passphrase.bytes()?;
        OpensslEnc::new(cipher.unwrap_or("aes-256-cbc"), passphrase, kdf, digest.unwrap_or("sha256"))
            .map_err(|error| exceptions::of_format(&error))
    }

    fn recipients(&self) -> PyResult<Recipients> {
        let mut recipients = Recipients::default();
        for text in &self.recipient {
            recipients.add(text).map_err(|error| exceptions::of_format(&error))?;
        }
        for file in &self.recipients_file {
            let place = file.place("recipients_file");
            let unusable =
                recipients.add_file(&file.read()?).map_err(|error| exceptions::at(&place, &error))?;
            if let Some(first) = unusable.first() {
                let text = format!("{place}, line {}: {}", first.line, first.error);
                return Err(Kind::InvalidKey.exception(&text));
            }
        }
        for file in &self.identity {
            let added = recipients.add_identity_file(&file.read()?, &mut |_| self.key_file_passphrase());
            added.map_err(|error| exceptions::at(&file.place("identity"), &error))?;
        }
        Ok(recipients)
    }

    fn identities(&self) -> PyResult<Identities> {
        let mut identities = Identities::default();
        for file in &self.identity {
            let added = identities.add_file(&file.read()?, &mut |_| self.key_file_passphrase());
            added.map_err(|error| exceptions::at(&file.place("identity"), &error))?;
        }
        if let Some(passphrase) = &self.passphrase {
            identities.add_passphrase(passphrase.secret()?, self.work_factors()?);
        }
        Ok(identities)
    }

    /// Files with keys: no output takes the place of one.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let all =
            self.identity.iter().chain(&self.recipients_file).chain(&self.key).chain(&self.key_encryption);
        let path = |secret: &Secret| match secret {
            Secret::Path(path) => Some(path.clone()),
            Secret::Contents(_) => None,
        };
        all.filter_map(path).collect()
    }

    /// That of an identity's own file.
    fn key_file_passphrase(&self) -> Option<SecretString> {
        self.key_passphrase.as_ref()?.secret().ok()
    }

    fn work_factors(&self) -> PyResult<WorkFactors> {
        let default = WorkFactors::default();
        let new = self.work_factor.unwrap_or(default.new);
        let most = self.work_factor_max.unwrap_or(default.most);
        if !(10..=WorkFactors::HIGHEST).contains(&new) {
            return Err(refused("work_factor is a number from 10 to 22"));
        }
        if !(1..=WorkFactors::HIGHEST).contains(&most) {
            return Err(refused("work_factor_max is a number from 1 to 22"));
        }
        Ok(WorkFactors { new, most: most.max(new) })
    }
}

impl Secret {
    /// What it is called in messages: where it lies, or which argument it was.
    fn place(&self, name: &str) -> String {
        match self {
            Self::Contents(_) => name.to_owned(),
            Self::Path(path) => PathDisplay(path).to_string(),
        }
    }

    fn read(&self) -> PyResult<Zeroizing<Vec<u8>>> {
        match self {
            Self::Contents(bytes) => Ok(Zeroizing::new(bytes.to_vec())),
            Self::Path(path) => read_secret(path),
        }
    }
}

impl Passphrase {
    fn bytes(&self) -> PyResult<Zeroizing<Vec<u8>>> {
        let bytes = match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        };
        if bytes.is_empty() {
            return Err(Kind::InvalidKey.exception("the passphrase is empty"));
        }
        Ok(Zeroizing::new(bytes.to_vec()))
    }

    /// As the age format takes it.
    fn secret(&self) -> PyResult<SecretString> {
        let bytes = self.bytes()?;
        let text = std::str::from_utf8(&bytes).map_err(|_| {
            Kind::InvalidKey.exception("the age format takes a passphrase of UTF-8 text only")
        })?;
        Ok(SecretString::from(text))
    }
}

/// Longest file that is taken for a key, as for the command.
const SECRET_BYTES_MAX: u64 = 16 << 20;

/// Whether what came as a path is a key itself, which no message may show.
fn is_contents(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let starts = ["AGE-SECRET-KEY-", "AGE-PLUGIN-", "{", "-----BEGIN"];
    bytes.contains(&b'\n') || starts.iter().any(|start| bytes.starts_with(start.as_bytes()))
}

/// Reads a key file into space that is large enough from the start, so that growing leaves no copy behind.
fn read_secret(path: &Path) -> PyResult<Zeroizing<Vec<u8>>> {
    if is_contents(path) {
        let text = "text is taken for the path of a key file, and this one is a key: its contents are given as bytes";
        return Err(Kind::InvalidKey.exception(text));
    }
    let refused = |error: std::io::Error| {
        let words = "cannot read the key";
        match error.raw_os_error() {
            Some(number) => PyOSError::new_err((number, words, path.as_os_str().to_owned())),
            None => PyOSError::new_err(format!("{words} {}: {error}", PathDisplay(path))),
        }
    };
    let file = open_named(path, OFlags::RDONLY | OFlags::CLOEXEC).map(File::from).map_err(refused)?;
    let expected = file.metadata().map_err(refused)?.len().clamp(64 << 10, SECRET_BYTES_MAX);
    let mut secret = Zeroizing::new(Vec::with_capacity(usize::try_from(expected).unwrap_or(usize::MAX) + 1));
    file.take(SECRET_BYTES_MAX + 1).read_to_end(&mut secret).map_err(refused)?;
    if secret.len() as u64 > SECRET_BYTES_MAX {
        return Err(Kind::InvalidKey.exception(&format!("{} is longer than a key can be", PathDisplay(path))));
    }
    Ok(secret)
}

fn refused(text: &'static str) -> PyErr {
    PyValueError::new_err(text)
}
