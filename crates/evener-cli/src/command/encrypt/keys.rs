//! Makes keys from options: which format, which key, and prompts for passphrases.
//!
//! Path: options -> [`Way`] (exactly one, checked) -> the files are read -> [`Sealer`] or [`Opener`].

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use evener::core::{Algorithm, Direction};
use evener_fd::open_named;
use evener_files::age_keys::{Identities, Recipients, WorkFactors};
use evener_files::format::openssl_enc::{self, OpensslEnc};
use evener_files::format::tink::Tink;
use evener_files::format::{Opener, Sealer};
use evener_files::keyset::Keyset;
use rustix::fs::OFlags;
use secrecy::SecretString;
use zeroize::Zeroizing;

use crate::machine::libraries::Operation;
use crate::terminal::{PathDisplay, output};

/// Options of both directions.
#[derive(clap::Args)]
#[command(next_help_heading = "Keys (one kind)")]
pub(crate) struct KeyOptions {
    /// Takes the age identities or the SSH key in FILE; encryption is for their recipients. May be repeated.
    #[arg(short, long = "identity", value_name = "FILE", group = "way")]
    identities: Vec<PathBuf>,

    /// Asks for a passphrase on the terminal.
    #[arg(short, long, group = "way", conflicts_with_all = ["passphrase_file", "key", "identities"])]
    passphrase: bool,

    /// Takes the first line of FILE as passphrase.
    #[arg(long, value_name = "FILE", group = "way", conflicts_with_all = ["key", "identities"])]
    passphrase_file: Option<PathBuf>,

    /// Takes a Tink keyset, as `evener keygen` makes it.
    #[arg(long, value_name = "KEY.json", group = "way", conflicts_with = "identities")]
    key: Option<PathBuf>,

    /// Format of the encrypted files; the key decides where this is not given. openssl is NOT authenticated.
    #[arg(long, value_enum, help_heading = "Format")]
    format: Option<Format>,

    /// Cipher of the openssl format; unless given, aes-256-cbc.
    #[arg(long, value_parser = cipher_parser(), help_heading = "Format")]
    cipher: Option<Algorithm>,

    /// Rounds of PBKDF2 of the openssl format; unless given, 10000, as in openssl.
    #[arg(long, value_name = "N", help_heading = "Format")]
    iter: Option<NonZeroU32>,

    /// Highest work factor of a passphrase (age) that is accepted in files that are read, unless given 20 (1 GiB) or, with --memory,
    /// what fits that.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=30), help_heading = "Format")]
    work_factor_max: Option<u8>,

    /// Binds files to STRING, which is not stored and must be given again to decrypt (tink).
    #[arg(long, value_name = "STRING", help_heading = "Format")]
    associated_data: Option<OsString>,
}

/// Recipients, for encryption only.
#[derive(clap::Args)]
#[command(next_help_heading = "Keys (one kind)")]
pub(crate) struct RecipientOptions {
    /// Encrypts for RECIPIENT: age1..., ssh-ed25519 ... or ssh-rsa .... May be repeated.
    #[arg(short, long = "recipient", value_name = "RECIPIENT", group = "way",
          conflicts_with_all = ["passphrase", "passphrase_file", "key"])]
    recipients: Vec<String>,

    /// Encrypts for every recipient in FILE, one a line. May be repeated.
    #[arg(short = 'R', long = "recipients-file", value_name = "FILE", group = "way",
          conflicts_with_all = ["passphrase", "passphrase_file", "key"])]
    recipients_files: Vec<PathBuf>,

    /// Work factor of a passphrase (age) for new files, unless given 18: 256 MiB and about a second; each more doubles both.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(10..=30), help_heading = "Format")]
    work_factor: Option<u8>,
}

/// The formats of encrypted files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// age v1, for recipients, identities and passphrases.
    Age,
    /// Tink streaming AEAD, for keysets.
    Tink,
    /// What `openssl enc -pbkdf2` reads and writes, for passphrases; NOT authenticated.
    Openssl,
}

/// Names as openssl writes them.
fn cipher_parser() -> impl TypedValueParser<Value = Algorithm> {
    PossibleValuesParser::new(["aes-128-cbc", "aes-192-cbc", "aes-256-cbc"])
        .map(|name| name.parse().expect("a possible value is an algorithm"))
}

impl Format {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Tink => "tink",
            Self::Openssl => "openssl",
        }
    }
}

impl KeyOptions {
    /// The format that options and key agree on.
    pub(crate) fn format(&self) -> anyhow::Result<Format> {
        let has_passphrase = self.passphrase || self.passphrase_file.is_some();
        let by_key = if self.key.is_some() { Format::Tink } else { Format::Age };
        let format = self.format.unwrap_or(by_key);
        match format {
            Format::Tink if self.key.is_none() => bail!("--format tink takes its key from --key KEY.json"),
            Format::Age if self.key.is_some() => bail!("--format age takes no --key"),
            Format::Openssl if !has_passphrase => {
                bail!("--format openssl takes its key from -p or --passphrase-file FILE");
            }
            _ => {}
        }
        if self.associated_data.is_some() && format != Format::Tink {
            bail!("--associated-data goes with --key only: the other formats have no place for it");
        }
        if (self.cipher.is_some() || self.iter.is_some()) && format != Format::Openssl {
            bail!("--cipher and --iter go with --format openssl only");
        }
        Ok(format)
    }

    /// What new files are sealed with.
    ///
    /// # Errors
    ///
    /// A sentence about the option or the key file that does not fit.
    pub(crate) fn sealer(
        &self,
        recipients: &RecipientOptions,
        memory: Option<u64>,
    ) -> anyhow::Result<Sealer> {
        match self.format()? {
            Format::Tink => Ok(Sealer::Tink(self.tink()?)),
            Format::Openssl => Ok(Sealer::OpensslEnc(self.openssl(Repeat::Yes)?)),
            Format::Age => match self.secret(Repeat::Yes)? {
                Some(passphrase) => {
                    let factors = self.work_factors(recipients.work_factor, memory)?;
                    Ok(Sealer::Age(Recipients::passphrase(text(&passphrase)?, factors)))
                }
                None => Ok(Sealer::Age(self.recipients(recipients)?)),
            },
        }
    }

    /// What files are opened with.
    ///
    /// # Errors
    ///
    /// As [`KeyOptions::sealer`].
    pub(crate) fn opener(&self, memory: Option<u64>) -> anyhow::Result<Opener> {
        match self.format()? {
            Format::Tink => Ok(Opener::Tink(self.tink()?)),
            Format::Openssl => Ok(Opener::OpensslEnc(self.openssl(Repeat::No)?)),
            Format::Age => Ok(Opener::Age(self.identities(memory)?)),
        }
    }

    /// What the format's segments are run with.
    ///
    /// # Errors
    ///
    /// Where options do not fit each other.
    pub(crate) fn rows(&self, direction: Direction) -> anyhow::Result<Vec<Operation>> {
        let algorithms = match self.format()? {
            Format::Tink => vec![Algorithm::Aes128Gcm, Algorithm::Aes256Gcm],
            Format::Age => vec![Algorithm::ChaCha20Poly1305],
            Format::Openssl => vec![self.cipher()],
        };
        Ok(algorithms.into_iter().map(|algorithm| (algorithm, direction)).collect())
    }

    /// What is accepted in files that are read: by its option, or what fits the memory that the user gave.
    fn most_work(&self, memory: Option<u64>) -> WorkFactors {
        let default = WorkFactors::default();
        let by_memory = memory.map_or(default.most, |memory| WorkFactors::within(memory).min(default.most));
        WorkFactors { most: self.work_factor_max.unwrap_or(by_memory), ..default }
    }

    /// As [`KeyOptions::most_work`], and the factor of new files.
    fn work_factors(&self, new: Option<u8>, memory: Option<u64>) -> anyhow::Result<WorkFactors> {
        let WorkFactors { new: default, most } = self.most_work(memory);
        let factor = new.unwrap_or(default);
        if new.is_none() && memory.is_some_and(|memory| WorkFactors::within(memory) < factor) {
            bail!(
                "the key of a passphrase takes {}, more than --memory says; --work-factor chooses what it takes",
                WorkFactors::cost(factor)
            );
        }
        // What was made is read again by the same command.
        Ok(WorkFactors { new: factor, most: most.max(factor) })
    }

    fn cipher(&self) -> Algorithm {
        self.cipher.unwrap_or(Algorithm::Aes256Cbc)
    }

    fn openssl(&self, repeat: Repeat) -> anyhow::Result<OpensslEnc> {
        let passphrase = self.secret(repeat)?.context("a passphrase is needed")?;
        let iterations = self.iter.unwrap_or(openssl_enc::ITERATIONS);
        Ok(OpensslEnc::new(self.cipher(), passphrase, iterations)?)
    }

    fn tink(&self) -> anyhow::Result<Tink> {
        let file = self.key.as_deref().context("a keyset is needed: --key KEY.json")?;
        let keyset = Keyset::parse(&read_secret(file)?).with_context(|| PathDisplay(file).to_string())?;
        Ok(Tink::new(keyset, self.associated_data.clone().unwrap_or_default().into_vec()))
    }

    fn recipients(&self, named: &RecipientOptions) -> anyhow::Result<Recipients> {
        let mut recipients = Recipients::default();
        for text in &named.recipients {
            recipients.add(text)?;
        }
        for file in &named.recipients_files {
            let mut text = String::new();
            let read = open(file)?.take(SECRET_BYTES_MAX as u64).read_to_string(&mut text);
            read.with_context(|| cannot_read(file))?;
            recipients.add_file(&text).with_context(|| PathDisplay(file).to_string())?;
        }
        for file in &self.identities {
            let added =
                recipients.add_identity_file(&read_secret(file)?, &mut |kind| prompt_passphrase(file, kind));
            added.with_context(|| PathDisplay(file).to_string())?;
        }
        Ok(recipients)
    }

    fn identities(&self, memory: Option<u64>) -> anyhow::Result<Identities> {
        let mut identities = Identities::default();
        if let Some(passphrase) = self.secret(Repeat::No)? {
            identities.add_passphrase(text(&passphrase)?, self.most_work(memory));
        }
        for file in &self.identities {
            let added = identities.add_file(&read_secret(file)?, &mut |kind| prompt_passphrase(file, kind));
            added.with_context(|| PathDisplay(file).to_string())?;
        }
        Ok(identities)
    }

    /// The passphrase, from where the options say; `None` where they name none.
    fn secret(&self, repeat: Repeat) -> anyhow::Result<Option<Zeroizing<Vec<u8>>>> {
        let secret = match &self.passphrase_file {
            Some(file) => openssl_enc::first_line(&read_secret(file)?),
            None if self.passphrase => from_terminal(repeat)?,
            None => return Ok(None),
        };
        if secret.is_empty() {
            bail!("the passphrase is empty");
        }
        Ok(Some(secret))
    }
}

/// Whether a passphrase is to be typed twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    Yes,
    No,
}

/// Reads a file that holds a secret; a line on standard error where others can read it too.
fn read_secret(path: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let mut file = open(path)?;
    let metadata = file.metadata().with_context(|| cannot_read(path))?;
    if metadata.is_file() && metadata.mode() & 0o044 != 0 {
        let mode = metadata.mode() & 0o777;
        output::warning(format_args!(
            "others can read {} (mode {mode:04o}); chmod 600 helps",
            PathDisplay(path)
        ));
    }
    // Room for all of it and a byte from the start, so that no copy is left behind by growing.
    let expected = usize::try_from(metadata.len()).unwrap_or_default().min(SECRET_BYTES_MAX);
    let mut secret = Zeroizing::new(Vec::with_capacity(expected.max(4_096) + 1));
    let limit = SECRET_BYTES_MAX as u64 + 1;
    file.by_ref().take(limit).read_to_end(&mut secret).with_context(|| cannot_read(path))?;
    if secret.len() > SECRET_BYTES_MAX {
        bail!("{} is longer than a key can be", PathDisplay(path));
    }
    Ok(secret)
}

/// Longest file that is taken for a key, so that a wrong path does not read a whole disk. Assumed, not measured: 16 MiB, far
/// beyond any key.
const SECRET_BYTES_MAX: usize = 16 << 20;

/// Opens a file that the user named; a stranger's link leads nowhere.
fn open(path: &Path) -> anyhow::Result<File> {
    open_named(path, OFlags::RDONLY).map(File::from).with_context(|| cannot_read(path))
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", PathDisplay(path))
}

fn from_terminal(repeat: Repeat) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let hidden = |prompt: &str| {
        let answer = rpassword::prompt_password(prompt);
        answer
            .map(Zeroizing::new)
            .context("cannot ask for the passphrase (--passphrase-file reads it from a file)")
    };
    let first = hidden("Passphrase: ")?;
    if repeat == Repeat::Yes && *hidden("The same again: ")? != *first {
        bail!("the two passphrases differ");
    }
    Ok(Zeroizing::new(first.as_bytes().to_vec()))
}

/// Asks for the passphrase of an encrypted key file.
fn prompt_passphrase(file: &Path, kind: &str) -> Option<SecretString> {
    let prompt = format!("Passphrase of {kind} {}: ", PathDisplay(file));
    rpassword::prompt_password(prompt).ok().map(SecretString::from)
}

fn text(passphrase: &[u8]) -> anyhow::Result<SecretString> {
    let text =
        std::str::from_utf8(passphrase).context("the age format takes a passphrase of UTF-8 text only")?;
    Ok(SecretString::from(text))
}
