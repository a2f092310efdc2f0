//! Makes keys from options: which format, which key, and prompts for passphrases.
//!
//! Path: options -> [`Way`] (exactly one, checked) -> the files are read -> [`Sealer`] or [`Opener`].

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use evener_files::Source;
use evener_files::age_keys::{Identities, Recipients, WorkFactors};
use evener_files::format::openssl_enc::{self, Kdf, OpensslEnc};
use evener_files::format::tink::Tink;
use evener_files::format::{Opener, Sealer};
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::tree;
use crate::key_files::{
    KeyProtection, KeysetFile, Repeat, STDIN, TerminalDialog, first_line_of, from_terminal,
    prompt_passphrase, read_public, read_secret, secret_text,
};
use crate::terminal::{PathDisplay, output};

/// The file that standard input is, if it is one.
pub(super) const STDIN_FILE: &str = "/dev/stdin";

/// Options of both directions.
#[derive(clap::Args)]
#[command(next_help_heading = "Keys (one kind)")]
pub(crate) struct KeyOptions {
    /// Takes the age identities or the SSH key in FILE.
    ///
    /// `-` is standard input; encryption is for their recipients. May be repeated.
    #[arg(short, long = "identity", value_name = "FILE", group = "way")]
    identities: Vec<PathBuf>,

    /// Takes the identity of the plugin age-plugin-NAME that needs no data, such as batchpass. May be repeated.
    #[arg(hide_short_help = true, short = 'j', long = "plugin", value_name = "NAME", group = "way")]
    plugins: Vec<String>,

    /// Asks for a passphrase on the terminal.
    ///
    /// For new files one is made where nothing is typed.
    #[arg(short, long, group = "way", conflicts_with_all = ["passphrase_file", "key", "identities", "plugins"])]
    passphrase: bool,

    /// Takes the first line of FILE as passphrase.
    ///
    /// `-` is standard input.
    #[arg(long, value_name = "FILE", group = "way", conflicts_with_all = ["key", "identities", "plugins"])]
    passphrase_file: Option<PathBuf>,

    /// Takes a Tink keyset, as `evener keygen` makes it.
    ///
    /// JSON or binary; `-` is standard input.
    #[arg(long, value_name = "KEY.json", group = "way", conflicts_with_all = ["identities", "plugins"])]
    key: Option<PathBuf>,

    #[command(flatten)]
    protection: KeyProtection,

    /// Format, if not the key's: age, tink or openssl.
    ///
    /// The key decides where this is not given. openssl is NOT authenticated.
    #[arg(long, value_enum, hide_possible_values = true, help_heading = "Format")]
    format: Option<Format>,

    /// Cipher of the openssl format, as `openssl enc -list` names it; unless given, aes-256-cbc.
    #[arg(hide_short_help = true, long, value_name = "CIPHER", help_heading = "Format")]
    cipher: Option<String>,

    /// Digest of the openssl format that makes the key; unless given, sha256. openssl before 1.1.0 took md5.
    #[arg(hide_short_help = true, long, value_name = "DIGEST", help_heading = "Format")]
    md: Option<String>,

    /// How the openssl format makes the key; legacy is what openssl does without -pbkdf2.
    #[arg(hide_short_help = true, long, value_enum, help_heading = "Format")]
    kdf: Option<KdfName>,

    /// Rounds of PBKDF2 of the openssl format; unless given, 10000, as in openssl.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Format")]
    iter: Option<u32>,

    /// The openssl format's files have no salt, as with `openssl enc -nosalt`. For decryption only.
    #[arg(hide_short_help = true, long, help_heading = "Format")]
    no_salt: bool,

    /// Highest work factor of a passphrase (age) that is accepted in files that are read, unless given 20 (1 GiB) or, with --memory,
    /// what fits that; 22 (4 GiB) is the highest.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = work_factor(1), help_heading = "Format")]
    work_factor_max: Option<u8>,

    /// Binds files to STRING, which is not stored and must be given again to decrypt (tink).
    #[arg(hide_short_help = true, long, value_name = "STRING", help_heading = "Format")]
    associated_data: Option<OsString>,
}

/// Recipients, for encryption only.
#[derive(clap::Args)]
#[command(next_help_heading = "Keys (one kind)")]
pub(crate) struct RecipientOptions {
    /// Encrypts for RECIPIENT, age1... or ssh-....
    ///
    /// age1..., age1pq1..., those of plugins, ssh-ed25519 ... or ssh-rsa .... May be repeated.
    #[arg(short, long = "recipient", value_name = "RECIPIENT", group = "way",
          conflicts_with_all = ["passphrase", "passphrase_file", "key"])]
    recipients: Vec<String>,

    /// Encrypts for every recipient in FILE.
    ///
    /// One a line; `-` is standard input. May be repeated.
    #[arg(short = 'R', long = "recipients-file", value_name = "FILE", group = "way",
          conflicts_with_all = ["passphrase", "passphrase_file", "key"])]
    recipients_files: Vec<PathBuf>,

    /// Work factor of a passphrase (age) for new files, unless given 18: 256 MiB and about a second; each more doubles both. 22 is the
    /// highest, which age, too, reads.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = work_factor(10), help_heading = "Format")]
    work_factor: Option<u8>,
}

/// A work factor from `least` on, as far as the format's programs go.
fn work_factor(least: i64) -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(least..=i64::from(WorkFactors::HIGHEST))
}

/// The formats of encrypted files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// age v1, for recipients, identities and passphrases.
    Age,
    /// Tink streaming AEAD, for keysets.
    Tink,
    /// What `openssl enc` reads and writes, for passphrases; NOT authenticated.
    Openssl,
}

/// How a key is made of a passphrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KdfName {
    /// PBKDF2, as with `openssl enc -pbkdf2`.
    Pbkdf2,
    /// One round of a digest, as without it: guessed quickly.
    Legacy,
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
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Age => ".age",
            Self::Tink => ".tink",
            Self::Openssl => ".enc",
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
        let is_openssl = format == Format::Openssl;
        let of_openssl = self.cipher.is_some()
            || self.md.is_some()
            || self.kdf.is_some()
            || self.iter.is_some()
            || self.no_salt;
        if of_openssl && !is_openssl {
            bail!("--cipher, --md, --kdf, --iter and --no-salt go with --format openssl only");
        }
        if self.iter.is_some() && self.kdf == Some(KdfName::Legacy) {
            bail!("--iter goes with --kdf pbkdf2 only: the old way has one round");
        }
        if self.protection.files().next().is_some() && self.key.is_none() {
            bail!("--key-passphrase-file and --key-encryption go with --key only");
        }
        Ok(format)
    }

    fn all_files<'f>(&'f self, named: Option<&'f RecipientOptions>) -> impl Iterator<Item = &'f PathBuf> {
        let own = self.identities.iter().chain(&self.passphrase_file).chain(&self.key);
        let own = own.chain(self.protection.files());
        own.chain(named.into_iter().flat_map(|named| &named.recipients_files))
    }

    /// Files with keys: no output may take the place of one.
    pub(super) fn files(&self, named: Option<&RecipientOptions>) -> Vec<PathBuf> {
        let open = |file: &PathBuf| {
            if file.as_path() == Path::new(STDIN) { STDIN_FILE.into() } else { file.clone() }
        };
        self.all_files(named).map(open).collect()
    }

    /// Key files that are standard input, which can be read once.
    ///
    /// # Errors
    ///
    /// A sentence where there are several, or the data come from there too.
    pub(crate) fn check_stdin(
        &self,
        named: Option<&RecipientOptions>,
        sources: &[Source],
    ) -> anyhow::Result<()> {
        let count = self.all_files(named).filter(|file| file.as_path() == Path::new(STDIN)).count();
        match (count, sources.contains(&Source::Stdin)) {
            (0 | 1, false) | (0, true) => Ok(()),
            (1.., true) => bail!("keys and data cannot both come from standard input"),
            (_, false) => bail!("standard input can be read once, and several options want keys from it"),
        }
    }

    /// What new files are sealed with.
    ///
    /// # Errors
    ///
    /// A sentence about the option or the key file that does not fit.
    pub(crate) fn sealer(
        &self,
        recipients: &RecipientOptions,
        sources: &[Source],
        output: &tree::Output,
        memory: Option<u64>,
    ) -> anyhow::Result<Sealer> {
        let is_of_passphrase = self.passphrase || self.passphrase_file.is_some();
        if recipients.work_factor.is_some() && !(is_of_passphrase && self.format()? == Format::Age) {
            bail!("--work-factor goes with a passphrase of the age format only");
        }
        match self.format()? {
            Format::Tink => Ok(Sealer::Tink(self.tink()?)),
            Format::Openssl if self.no_salt => {
                bail!(
                    "--no-salt is for decryption only: without a salt every file under a passphrase has the same key and IV"
                );
            }
            Format::Openssl => Ok(Sealer::OpensslEnc(self.openssl(Repeat::Yes)?)),
            Format::Age => match self.secret(Repeat::Yes)? {
                Some(passphrase) => {
                    let factors = self.work_factors(recipients.work_factor, memory)?;
                    let passphrase = secret_text(&passphrase)?;
                    let of_tree = tree::recipients(&passphrase, factors, sources, output)?;
                    Ok(Sealer::Age(of_tree.unwrap_or_else(|| Recipients::passphrase(passphrase, factors))))
                }
                None => Ok(Sealer::Age(self.recipients(recipients)?)),
            },
        }
    }

    /// What files are opened with, and inputs that are no files but keys.
    ///
    /// # Errors
    ///
    /// As [`KeyOptions::sealer`].
    pub(crate) fn opener(
        &self,
        sources: &[Source],
        memory: Option<u64>,
    ) -> anyhow::Result<(Opener, Vec<PathBuf>)> {
        match self.format()? {
            Format::Tink => Ok((Opener::Tink(self.tink()?), Vec::new())),
            Format::Openssl => Ok((Opener::OpensslEnc(self.openssl(Repeat::No)?), Vec::new())),
            Format::Age => {
                let mut identities = self.identities()?;
                let mut of_trees = tree::identity_files(sources);
                if let Some(passphrase) = self.secret(Repeat::No)? {
                    let passphrase: SecretString = secret_text(&passphrase)?;
                    of_trees =
                        tree::add_identities(&passphrase, self.most_work(memory), sources, &mut identities)?;
                    identities.add_passphrase(passphrase, self.most_work(memory));
                }
                Ok((Opener::Age(identities), of_trees))
            }
        }
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

    fn openssl(&self, repeat: Repeat) -> anyhow::Result<OpensslEnc> {
        let passphrase = self.secret(repeat)?.context("a passphrase is needed")?;
        let kdf = match self.kdf {
            Some(KdfName::Legacy) => Kdf::Legacy,
            Some(KdfName::Pbkdf2) | None => {
                Kdf::Pbkdf2(self.iter.and_then(NonZeroU32::new).unwrap_or(openssl_enc::ITERATIONS))
            }
        };
        let (cipher, digest) = (self.cipher.as_deref(), self.md.as_deref());
        let made =
            OpensslEnc::new(cipher.unwrap_or("aes-256-cbc"), passphrase, kdf, digest.unwrap_or("sha256"))?;
        Ok(if self.no_salt { made.without_salt() } else { made })
    }

    fn tink(&self) -> anyhow::Result<Tink> {
        let file = self.key.as_deref().context("a keyset is needed: --key KEY.json")?;
        let keyset = KeysetFile::read(file, &self.protection)?.keyset;
        Ok(Tink::new(keyset, self.associated_data.clone().unwrap_or_default().into_vec()))
    }

    fn recipients(&self, named: &RecipientOptions) -> anyhow::Result<Recipients> {
        let mut recipients = Recipients::with_dialog(Arc::new(TerminalDialog));
        let all = named.recipients.len();
        for (at, text) in named.recipients.iter().enumerate() {
            // By its number: what was meant for a recipient may be a secret key.
            match recipients.add(text) {
                Err(error) if all > 1 => {
                    return Err(error).with_context(|| format!("-r, {} of {all}", at + 1));
                }
                added => added?,
            }
        }
        for file in &named.recipients_files {
            let unusable =
                recipients.add_file(&read_public(file)?).with_context(|| PathDisplay(file).to_string())?;
            for key in unusable {
                let (line, error) = (key.line, key.error);
                output::warning(format_args!("{}, line {line} is left out: {error}", PathDisplay(file)));
            }
        }
        for file in &self.identities {
            let added =
                recipients.add_identity_file(&read_secret(file)?, &mut |kind| prompt_passphrase(file, kind));
            added.with_context(|| PathDisplay(file).to_string())?;
        }
        for plugin in &self.plugins {
            recipients.add_plugin(plugin).with_context(|| format!("plugin {plugin:?}"))?;
        }
        Ok(recipients)
    }

    fn identities(&self) -> anyhow::Result<Identities> {
        let mut identities = Identities::with_dialog(Arc::new(TerminalDialog));
        for file in &self.identities {
            let added = identities.add_file(&read_secret(file)?, &mut |kind| prompt_passphrase(file, kind));
            added.with_context(|| PathDisplay(file).to_string())?;
        }
        for plugin in &self.plugins {
            identities.add_plugin(plugin).with_context(|| format!("plugin {plugin:?}"))?;
        }
        Ok(identities)
    }

    /// The passphrase, from where the options say; `None` where they name none.
    fn secret(&self, repeat: Repeat) -> anyhow::Result<Option<Zeroizing<Vec<u8>>>> {
        let secret = match &self.passphrase_file {
            Some(file) => first_line_of(file)?,
            None if self.passphrase => from_terminal(repeat)?,
            None => return Ok(None),
        };
        if secret.is_empty() {
            bail!("the passphrase is empty");
        }
        Ok(Some(secret))
    }
}
