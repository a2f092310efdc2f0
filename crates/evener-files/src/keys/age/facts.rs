//! Facts about keys, as errors.

use crate::error::FormatError;

pub(super) fn identity(fact: &str) -> FormatError {
    FormatError::Identity(fact.into())
}

pub(super) fn recipient(fact: &str) -> FormatError {
    FormatError::Recipient(fact.into())
}

pub(super) fn no_passphrase() -> FormatError {
    identity("it is encrypted, and no passphrase was given")
}

pub(super) fn no_ssh_key() -> FormatError {
    identity("not an SSH private key that age knows")
}

pub(super) fn wrong_ssh_passphrase() -> FormatError {
    identity("wrong passphrase for the SSH key")
}

pub(super) fn at_line(error: FormatError, number: usize) -> FormatError {
    let at = |fact: String| format!("line {number}: {fact}");
    match error {
        FormatError::Recipient(fact) => FormatError::Recipient(at(fact)),
        FormatError::Identity(fact) => FormatError::Identity(at(fact)),
        FormatError::Unsupported(fact) => FormatError::Unsupported(at(fact)),
        other => other,
    }
}
