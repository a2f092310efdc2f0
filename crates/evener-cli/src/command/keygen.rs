//! `evener keygen`: a new key in a file that only its owner can read. Nothing secret is printed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use evener_files::age_keys::{NewIdentity, generate_identity};
use evener_files::keyset::{Keyset, Template};

use crate::atomic_file;
use crate::terminal::{Exit, PathDisplay, output};

/// Makes a key.
///
/// A Tink keyset (AES-GCM-HKDF streaming) for --key, or with --age an identity for -i, whose public key is
/// a recipient for -r.
///
/// The file gets mode 0600 and must not exist.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener keygen KEY.json             then: evener encrypt --key KEY.json -o OUT INPUT
  evener keygen --age ID.txt         then: evener encrypt -r age1... -o OUT INPUT
                                     and:  evener decrypt -i ID.txt -o OUT INPUT")]
pub(crate) struct Keygen {
    /// File to make; with --age it may be left out, and the identity goes to standard output.
    #[arg(value_name = "KEY.json", required_unless_present = "age")]
    file: Option<PathBuf>,

    /// Makes an age identity; its public key is printed to standard error.
    #[arg(long, conflicts_with = "template")]
    age: bool,

    /// Kind of key: length of the AES key and of the segments that files are cut into.
    #[arg(long, value_parser = template_parser(), default_value = Template::ALL[0].name)]
    template: Template,
}

fn template_parser() -> impl clap::builder::TypedValueParser<Value = Template> {
    PossibleValuesParser::new(Template::ALL.iter().map(|template| template.name))
        .map(|name| name.parse().expect("a possible value is a template"))
}

pub(crate) fn run(arguments: &Keygen) -> anyhow::Result<Exit> {
    match arguments.file.as_deref().filter(|file| *file != Path::new("-")) {
        file if arguments.age => age_identity(file),
        None => bail!("a keyset is written to a file only: evener keygen KEY.json"),
        Some(file) => {
            write_secret(file, &Keyset::generate(arguments.template)?.to_json())?;
            Ok(Exit::Done)
        }
    }
}

fn age_identity(file: Option<&Path>) -> anyhow::Result<Exit> {
    let NewIdentity { file: identity, recipient } = generate_identity(SystemTime::now());
    let written = match file {
        Some(file) => write_secret(file, identity.as_bytes()).map(|()| Exit::Done),
        None => output::answer(identity.as_bytes()),
    };
    if written.is_ok() {
        eprintln!("Public key: {recipient}");
    }
    written
}

/// Writes a file that did not exist, readable and writable by its owner only; all of it or none.
fn write_secret(file: &Path, secret: &[u8]) -> anyhow::Result<()> {
    atomic_file::write_new(file, secret).with_context(|| format!("cannot make {}", PathDisplay(file)))
}
