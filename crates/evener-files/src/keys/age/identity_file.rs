//! Identity files: age identities one a line, an SSH private key, or age identities encrypted with a passphrase.

use std::sync::Arc;

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::facts::{at_line, identity, no_passphrase};
use super::native::{HybridIdentity, X25519Identity};
use super::plugin::{Dialog, Plugin};
use super::small_file;
use super::ssh::{self, SshSecret};
use crate::armor::is_armored;
use crate::error::FormatError;
use crate::keys::text::{decoded, entries};

/// Asks the user for the passphrase of what the argument names; `None` where it cannot be had.
pub type AskPassphrase<'a> = dyn FnMut(&str) -> Option<SecretString> + 'a;

pub(super) enum Secret {
    X25519(X25519Identity),
    Hybrid(HybridIdentity),
    Ssh(SshSecret),
    Plugin(Plugin),
}

pub(super) fn secrets(
    bytes: &[u8],
    prompt: &mut AskPassphrase<'_>,
    dialog: &Arc<dyn Dialog>,
) -> Result<Vec<Secret>, FormatError> {
    let text = if is_armored(bytes) || bytes.starts_with(b"age-encryption.org/") {
        decrypted_file(bytes, prompt)?
    } else {
        decoded(bytes).ok_or_else(|| identity("the file is not text"))?
    };
    if text.trim_start().starts_with("-----BEGIN") {
        return Ok(vec![Secret::Ssh(ssh::read(text.trim_start())?)]);
    }
    let parse = |(number, line)| secret(line, dialog).ok_or_else(|| at_line(not_an_identity(line), number));
    let secrets: Vec<Secret> = entries(&text).map(parse).collect::<Result<_, _>>()?;
    if secrets.is_empty() { Err(identity("the file holds none")) } else { Ok(secrets) }
}

fn secret(line: &str, dialog: &Arc<dyn Dialog>) -> Option<Secret> {
    X25519Identity::parse(line)
        .map(Secret::X25519)
        .or_else(|| HybridIdentity::parse(line).map(Secret::Hybrid))
        .or_else(|| Plugin::identity(line, dialog).map(Secret::Plugin))
}

/// Why a line is no identity; without the line.
fn not_an_identity(line: &str) -> FormatError {
    if line.starts_with("age1") || line.starts_with("ssh-") {
        identity("this is a recipient, which is public: -r and -R take those")
    } else {
        identity("not an age identity")
    }
}

/// The text of an identity file that is itself an age file under a passphrase.
fn decrypted_file(bytes: &[u8], prompt: &mut AskPassphrase<'_>) -> Result<Zeroizing<String>, FormatError> {
    let sealed = small_file::Sealed::read(bytes)?;
    let passphrase = prompt("the identity file").ok_or_else(no_passphrase)?;
    let text = sealed
        .open(passphrase, small_file::FACTORS)?
        .ok_or_else(|| identity("wrong passphrase for the encrypted file"))?;
    decoded(&text).ok_or_else(|| identity("the encrypted file is not text"))
}
