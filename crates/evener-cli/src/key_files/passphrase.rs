//! Passphrases: typed, made, or the first line of a file.

use std::path::Path;

use anyhow::{Context as _, bail};
use evener_files::age_keys::new_passphrase;
use evener_files::format::openssl_enc;
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::read_secret;
use crate::terminal::{PathDisplay, output, prompt};

/// Whether a passphrase is new: it is typed twice then, or made where nothing is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    Yes,
    No,
}

/// Asks on the terminal.
pub(crate) fn from_terminal(repeat: Repeat) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let hidden = |question: &str| {
        let answer = prompt::hidden(question);
        answer.context("cannot ask for the passphrase (--passphrase-file reads it from a file)")
    };
    let first = match repeat {
        Repeat::No => hidden("Passphrase: ")?,
        Repeat::Yes => hidden("Passphrase (none: one is made): ")?,
    };
    if repeat == Repeat::Yes && first.is_empty() {
        let made = new_passphrase()?;
        output::line(format_args!("the passphrase made for this is: {}", *made));
        return Ok(Zeroizing::new(made.as_bytes().to_vec()));
    }
    if repeat == Repeat::Yes && *hidden("The same again: ")? != *first {
        bail!("the two passphrases differ");
    }
    Ok(first)
}

/// The first line of a file, as openssl takes it: a carriage return belongs to it, and a byte order mark.
pub(crate) fn first_line_of(file: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    Ok(openssl_enc::first_line(&read_secret(file)?))
}

/// Asks for the passphrase of an encrypted key file.
pub(crate) fn prompt_passphrase(file: &Path, kind: &str) -> Option<SecretString> {
    let question = format!("Passphrase of {kind} {}: ", PathDisplay(file));
    secret_text(&prompt::hidden(&question).ok()?).ok()
}

/// A passphrase for age, which takes text: what editors leave around a line, a byte order mark and a carriage return, is none of it.
pub(crate) fn secret_text(passphrase: &[u8]) -> anyhow::Result<SecretString> {
    let text = passphrase.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(passphrase);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let text = std::str::from_utf8(text).context("the age format takes a passphrase of UTF-8 text only")?;
    if text.is_empty() {
        bail!("the passphrase is empty");
    }
    Ok(SecretString::from(text))
}
