//! Identity files: age identities one a line, an SSH private key, or age identities encrypted with a passphrase.

use std::io::Read as _;

use age::ssh::UnsupportedKey;
use age::{DecryptError, Decryptor, Identity, ssh, x25519};
use age_core::secrecy::SecretString;
use zeroize::Zeroizing;

use super::facts::{at_line, identity, no_passphrase};
use super::passphrase::{WorkFactors, passphrase_identity};
use crate::armor::{dearmored, is_armored};
use crate::error::FormatError;

/// Asks the user for the passphrase of what the argument names; `None` where it cannot be had.
pub type AskPassphrase<'a> = dyn FnMut(&str) -> Option<SecretString> + 'a;

pub(super) enum Secret {
    Native(x25519::Identity),
    Ssh(ssh::Identity),
}

pub(super) fn secrets(bytes: &[u8], prompt: &mut AskPassphrase<'_>) -> Result<Vec<Secret>, FormatError> {
    if is_armored(bytes) || bytes.starts_with(b"age-encryption.org/") {
        return native_secrets(&decrypted_file(bytes, prompt)?);
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
fn decrypted_file(bytes: &[u8], prompt: &mut AskPassphrase<'_>) -> Result<Zeroizing<String>, FormatError> {
    let damaged = |_| identity("the encrypted file is damaged");
    let not_mine = |error: DecryptError| match error {
        DecryptError::DecryptionFailed => identity("wrong passphrase for the encrypted file"),
        DecryptError::ExcessiveWork { .. } => {
            identity("the passphrase of the encrypted file asks for too much work")
        }
        _ => identity("the encrypted file is damaged"),
    };
    let decryptor = Decryptor::new(dearmored(bytes).map_err(damaged)?).map_err(not_mine)?;
    if !decryptor.is_scrypt() {
        return Err(identity("the encrypted file is not encrypted with a passphrase"));
    }
    let key =
        passphrase_identity(prompt("the identity file").ok_or_else(no_passphrase)?, WorkFactors::default());
    let keys = std::iter::once(&key as &dyn Identity);
    let mut text = Zeroizing::new(String::new());
    decryptor.decrypt(keys).map_err(not_mine)?.read_to_string(&mut text).map_err(damaged)?;
    Ok(text)
}

/// Lines that say something, with their numbers from 1.
pub(super) fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(place, line)| (place + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}
