//! `evener keyset`: what a Tink keyset holds, and its rotation: a key is added, made the primary one, taken out of use.

use std::path::PathBuf;

use clap::Subcommand;
use evener_files::FormatError;
use evener_files::keyset::{Keyset, Template};

use super::encrypt::abandon;
use super::keygen::template_parser;
use crate::key_files::{KeyProtection, KeysetFile};
use crate::terminal::{Exit, output, signals};

/// Looks into Tink keysets and rotates their keys.
///
/// To rotate: add a key, bring the file to every reader, promote the key, and when no file is left that the old key sealed,
/// disable that. The file is replaced in one step and stays as it was protected: in clear, under a passphrase, or encrypted.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  evener keyset list KEY.json
  evener keyset add KEY.json                 prints the new key's id
  evener keyset promote KEY.json 1234567890
  evener keyset disable KEY.json 987654321")]
pub(crate) enum KeysetCommand {
    /// Prints the keys of a keyset, nothing secret: id, status, kind, and which one is primary.
    List {
        /// The keyset.
        #[arg(value_name = "KEY.json")]
        file: PathBuf,
        #[command(flatten)]
        protection: KeyProtection,
    },
    /// Adds a new key, which opens from now on and seals once it is promoted; prints its id.
    Add {
        /// The keyset.
        #[arg(value_name = "KEY.json")]
        file: PathBuf,
        /// Kind of key.
        #[arg(long, value_parser = template_parser(), default_value = Template::ALL[0].name)]
        template: Template,
        #[command(flatten)]
        protection: KeyProtection,
    },
    /// Makes a key the primary one, which seals.
    Promote(OneKey),
    /// Takes a key out of use: it opens nothing any more.
    Disable(OneKey),
    /// Takes a disabled key into use again.
    Enable(OneKey),
}

/// A key of a keyset.
#[derive(clap::Args)]
pub(crate) struct OneKey {
    /// The keyset.
    #[arg(value_name = "KEY.json")]
    file: PathBuf,
    /// The key's id, as `evener keyset list` prints it.
    #[arg(value_name = "ID")]
    id: u32,
    #[command(flatten)]
    protection: KeyProtection,
}

pub(crate) fn run(command: &KeysetCommand) -> anyhow::Result<Exit> {
    signals::end_soon_after_signals(abandon)?;
    match command {
        KeysetCommand::List { file, protection } => {
            output::answer(list(&KeysetFile::read(file, protection)?).as_bytes())
        }
        KeysetCommand::Add { file, template, protection } => {
            let id = KeysetFile::change(file, protection, |keyset| keyset.add(*template))?;
            output::answer(format!("{id}\n").as_bytes())
        }
        KeysetCommand::Promote(key) => change(key, |keyset| keyset.promote(key.id)),
        KeysetCommand::Disable(key) => change(key, |keyset| keyset.set_enabled(key.id, false)),
        KeysetCommand::Enable(key) => change(key, |keyset| keyset.set_enabled(key.id, true)),
    }
}

fn change(key: &OneKey, change: impl FnOnce(&mut Keyset) -> Result<(), FormatError>) -> anyhow::Result<Exit> {
    KeysetFile::change(&key.file, &key.protection, change)?;
    Ok(Exit::Done)
}

fn list(keyset: &KeysetFile) -> String {
    let rows = keyset.keyset.rows().into_iter().map(|row| {
        let marks = match (row.is_primary, row.is_usable) {
            (true, _) => "  primary",
            (false, true) => "",
            (false, false) => "  left aside",
        };
        format!("{:>10}  {:<9} {}{marks}\n", row.id, row.status, output::one_line(&row.kind))
    });
    rows.collect()
}
