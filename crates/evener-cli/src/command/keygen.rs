//! `evener keygen`: a new key in a file that only its owner can read. Nothing secret is printed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use evener_files::age_keys::{NewIdentity, Recipients, generate_identity, sealed_under};
use evener_files::keyset::{Keyset, KeysetForm, Template};

use super::encrypt::abandon;
use crate::key_files::{
    KeyProtection, KeysetFile, Repeat, from_terminal, prompt_passphrase, read_secret, secret_text,
    write_secret,
};
use crate::terminal::{Exit, PathDisplay, output, signals};

/// Makes a key.
///
/// A Tink keyset (AES-GCM-HKDF or AES-CTR-HMAC streaming) for --key, or with --age an identity for -i, whose public key is
/// a recipient for -r.
///
/// The file gets mode 0600 and must not exist.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener keygen KEY.json             then: evener encrypt --key KEY.json -o OUT INPUT
  evener keygen --age ID.txt         then: evener encrypt -r age1... -o OUT INPUT
                                     and:  evener decrypt -i ID.txt -o OUT INPUT
  evener keygen -y ID.txt            prints the recipients of its identities")]
pub(crate) struct Keygen {
    /// File to make; with --age it may be left out, and the identity goes to standard output.
    #[arg(value_name = "KEY.json", required_unless_present_any = ["age", "recipients_of"])]
    file: Option<PathBuf>,

    /// Makes an age identity; its public key is printed to standard error.
    #[arg(long, conflicts_with = "template")]
    age: bool,

    /// Makes the identity one against quantum computers: age1pq1..., read by age from 1.3 on.
    #[arg(long, requires = "age")]
    post_quantum: bool,

    /// Makes nothing: prints the recipients of the identities or of the SSH key in ID.txt; `-` is standard input.
    #[arg(short = 'y', long, value_name = "ID.txt", conflicts_with_all = ["file", "age", "template", "passphrase", "binary"])]
    recipients_of: Option<PathBuf>,

    /// Kind of key: length of the AES key and of the segments that files are cut into.
    #[arg(long, value_parser = template_parser(), default_value = Template::ALL[0].name)]
    template: Template,

    /// Keeps the file under a passphrase, as an age file; asks for it on the terminal.
    #[arg(short, long, conflicts_with = "key_encryption")]
    passphrase: bool,

    /// Writes the keyset as protobuf instead of JSON.
    #[arg(long, conflicts_with = "age")]
    binary: bool,

    #[command(flatten)]
    protection: KeyProtection,
}

/// Names of the templates.
pub(super) fn template_parser() -> impl clap::builder::TypedValueParser<Value = Template> {
    PossibleValuesParser::new(Template::ALL.iter().map(|template| template.name))
        .map(|name| name.parse().expect("a possible value is a template"))
}

pub(crate) fn run(arguments: &Keygen) -> anyhow::Result<Exit> {
    signals::end_soon_after_signals(abandon)?;
    if let Some(file) = &arguments.recipients_of {
        return print_recipients(file);
    }
    match arguments.file.as_deref().filter(|file| *file != Path::new("-")) {
        file if arguments.age => age_identity(file, arguments),
        None => bail!("a keyset is written to a file only: evener keygen KEY.json"),
        Some(file) => {
            let form = if arguments.binary { KeysetForm::Binary } else { KeysetForm::Json };
            let protection = arguments.protection.of_new(arguments.passphrase)?;
            KeysetFile::new(Keyset::generate(arguments.template)?, form, protection).create(file)?;
            Ok(Exit::Done)
        }
    }
}

fn age_identity(file: Option<&Path>, arguments: &Keygen) -> anyhow::Result<Exit> {
    if arguments.protection.files().next().is_some() {
        bail!(
            "--key-passphrase-file and --key-encryption are for keysets; an identity goes under a passphrase with -p"
        );
    }
    let NewIdentity { file: identity, recipient } =
        generate_identity(SystemTime::now(), arguments.post_quantum)?;
    let sealed;
    let bytes = if arguments.passphrase {
        let passphrase = secret_text(&from_terminal(Repeat::Yes)?)?;
        sealed = sealed_under(&passphrase, identity.as_bytes())?;
        &sealed[..]
    } else {
        identity.as_bytes()
    };
    let written = match file {
        Some(file) => write_secret(file, bytes).map(|()| Exit::Done),
        None => output::answer(bytes),
    };
    if written.is_ok() {
        eprintln!("Public key: {recipient}");
    }
    written
}

fn print_recipients(file: &Path) -> anyhow::Result<Exit> {
    let about = || PathDisplay(file).to_string();
    let mut recipients = Recipients::default();
    let secret = read_secret(file)?;
    recipients.add_identity_file(&secret, &mut |kind| prompt_passphrase(file, kind)).with_context(about)?;
    let mut text = String::new();
    for recipient in recipients.texts() {
        let recipient = recipient.as_deref();
        let recipient = recipient.context("the recipient of a plugin's identity is the plugin's to tell");
        text.push_str(recipient.with_context(about)?);
        text.push('\n');
    }
    output::answer(text.as_bytes())
}
