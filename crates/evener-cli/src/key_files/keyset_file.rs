//! Keysets in files: in clear, under a passphrase (an age file with the keyset in it), or encrypted under a key-encryption keyset, as Tink does it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

use anyhow::{Context as _, bail};
use evener_fd::{atomic_file, open_named};
use evener_files::FormatError;
use evener_files::age_keys::{is_age_file, opened_under, sealed_under};
use evener_files::keyset::{KeyEncryption, Keyset, KeysetForm};
use rustix::fs::{FlockOperation, OFlags, flock, fstat, stat};
use rustix::io::Errno;
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::{
    Repeat, first_line_of, from_terminal, prompt_passphrase, read_held, read_secret, secret_text,
    write_secret,
};
use crate::terminal::{PathDisplay, output, signals};

/// How a keyset's file is protected.
#[derive(clap::Args)]
pub(crate) struct KeyProtection {
    /// Takes the first line of FILE as passphrase of the keyset's own file; unless given, it is asked for.
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    key_passphrase_file: Option<PathBuf>,

    /// Takes a cleartext keyset of AEAD keys that the keyset is encrypted under, as Tink does it.
    #[arg(hide_short_help = true, long, value_name = "KEK.json", conflicts_with = "key_passphrase_file")]
    key_encryption: Option<PathBuf>,
}

impl KeyProtection {
    /// The files that it reads.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.key_passphrase_file.iter().chain(&self.key_encryption)
    }

    fn kek(&self) -> anyhow::Result<Option<KeyEncryption>> {
        let Some(file) = &self.key_encryption else { return Ok(None) };
        let kek = KeyEncryption::parse(&read_secret(file)?);
        kek.map(Some).with_context(|| PathDisplay(file).to_string())
    }

    fn passphrase(&self, file: &Path) -> anyhow::Result<SecretString> {
        match &self.key_passphrase_file {
            Some(from) => secret_text(&first_line_of(from)?),
            None => prompt_passphrase(file, "the keyset").context(
                "cannot ask for the keyset's passphrase (--key-passphrase-file reads it from a file)",
            ),
        }
    }

    /// What a new keyset's file is protected with; `asks` says that a passphrase is to be asked for.
    pub(crate) fn of_new(&self, asks: bool) -> anyhow::Result<Protection> {
        if let Some(kek) = self.kek()? {
            return Ok(Protection::Keyset(kek));
        }
        match &self.key_passphrase_file {
            Some(from) => Ok(Protection::Passphrase(secret_text(&first_line_of(from)?)?)),
            None if asks => Ok(Protection::Passphrase(secret_text(&from_terminal(Repeat::Yes)?)?)),
            None => Ok(Protection::None),
        }
    }
}

/// What protects a keyset's file.
pub(crate) enum Protection {
    None,
    Passphrase(SecretString),
    Keyset(KeyEncryption),
}

/// A keyset with how its file is written.
pub(crate) struct KeysetFile {
    pub(crate) keyset: Keyset,
    form: KeysetForm,
    protection: Protection,
}

impl KeysetFile {
    pub(crate) const fn new(keyset: Keyset, form: KeysetForm, protection: Protection) -> Self {
        Self { keyset, form, protection }
    }

    /// Reads a file of any form.
    pub(crate) fn read(file: &Path, options: &KeyProtection) -> anyhow::Result<Self> {
        Self::opened(&read_secret(file)?, options, file)
    }

    fn opened(bytes: &[u8], options: &KeyProtection, file: &Path) -> anyhow::Result<Self> {
        let about = || PathDisplay(file).to_string();
        if is_age_file(bytes) {
            return Self::opened_by(bytes, Protection::Passphrase(options.passphrase(file)?))
                .with_context(about);
        }
        let (_, is_encrypted) = Keyset::form(bytes).with_context(about)?;
        let protection = options.kek()?.filter(|_| is_encrypted).map_or(Protection::None, Protection::Keyset);
        Self::opened_by(bytes, protection).with_context(about)
    }

    fn opened_by(bytes: &[u8], protection: Protection) -> Result<Self, FormatError> {
        let clear;
        let bytes = match &protection {
            Protection::Passphrase(passphrase) => {
                clear = opened_under(passphrase, bytes)?;
                &clear[..]
            }
            _ => bytes,
        };
        let (form, _) = Keyset::form(bytes)?;
        let keyset = match &protection {
            Protection::Keyset(kek) => Keyset::parse_encrypted(bytes, kek)?,
            _ => Keyset::parse(bytes)?,
        };
        Ok(Self::new(keyset, form, protection))
    }

    fn bytes(&self) -> anyhow::Result<Zeroizing<Vec<u8>>> {
        Ok(match &self.protection {
            Protection::None => self.keyset.written(self.form),
            Protection::Passphrase(passphrase) => {
                Zeroizing::new(sealed_under(passphrase, &self.keyset.written(self.form))?)
            }
            Protection::Keyset(kek) => self.keyset.written_encrypted(self.form, kek)?,
        })
    }

    /// Writes a file that did not exist.
    pub(crate) fn create(&self, file: &Path) -> anyhow::Result<()> {
        write_secret(file, &self.bytes()?)
    }

    /// Changes the keyset in a file: all of it or nothing, and no other change gets lost, for one waits for the other.
    pub(crate) fn change<T>(
        file: &Path,
        options: &KeyProtection,
        change: impl FnOnce(&mut Keyset) -> Result<T, FormatError>,
    ) -> anyhow::Result<T> {
        if file == Path::new(super::STDIN) {
            bail!("a keyset from standard input cannot be changed; name its file");
        }
        let about = || PathDisplay(file).to_string();
        // A link keeps its place: what it leads to is replaced.
        let place = fs::canonicalize(file).with_context(about)?;
        let bytes = read_secret(&place)?;
        // A passphrase is asked for before others have to wait.
        let mut keyset = Self::opened(&bytes, options, file)?;
        let mut held = held(&place).with_context(about)?;
        let now = read_held(&mut held, file)?;
        if *now != *bytes {
            keyset = Self::opened_by(&now, keyset.protection).with_context(about)?;
        }
        let changed = change(&mut keyset.keyset)?;
        let cannot_write = || format!("cannot write {}", PathDisplay(file));
        atomic_file::replace_kept(&place, &keyset.bytes()?).with_context(cannot_write)?;
        Ok(changed)
    }
}

/// How often it is looked whether another change has ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Waits until no other process changes the file, and keeps others waiting as long as it is open.
fn held(file: &Path) -> io::Result<File> {
    let mut is_told = false;
    loop {
        // NFS locks for itself only what may be written.
        let opened = open_named(file, OFlags::RDWR | OFlags::CLOEXEC)
            .or_else(|_| open_named(file, OFlags::RDONLY | OFlags::CLOEXEC))?;
        match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {}
            // Some file systems know no locks: there one process at a time has to change it.
            Err(_) => return Ok(opened.into()),
            // Who changed it meanwhile has put another file there.
            Ok(()) => {
                let (held, now) = (fstat(&opened)?, stat(file)?);
                if (held.st_dev, held.st_ino) == (now.st_dev, now.st_ino) {
                    return Ok(opened.into());
                }
            }
        }
        if !std::mem::replace(&mut is_told, true) {
            output::line(format_args!("waiting for another change of {}", PathDisplay(file)));
        }
        signals::end_if_noted();
        thread::sleep(BETWEEN_LOOKS);
    }
}
