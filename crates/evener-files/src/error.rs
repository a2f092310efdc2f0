//! What can be wrong with a key or with the bytes of a file, as facts.

/// A fact about a key or a file that stops the work on it. Texts are one line, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file does not start like a file of its format.
    #[error("not in the {format} format: {fact}")]
    Header {
        /// The format that was expected.
        format: &'static str,
        /// What is wrong with the start.
        fact: &'static str,
    },
    /// The header is whole, and none of the keys at hand was used for it.
    #[error("no key fits")]
    NoKeyFits,
    /// The file ends too early; `cipher_bytes` is where.
    #[error("truncated: the file ends after {cipher_bytes} bytes, inside a {place}")]
    Truncated {
        /// Length of what is there, in bytes.
        cipher_bytes: u64,
        /// `header` or `segment`.
        place: &'static str,
    },
    /// An empty last segment after others: never written by an honest program in this format.
    #[error("malformed: the last segment is empty")]
    EmptyLastSegment,
    /// A segment's tag or padding does not fit: wrong key or associated data, or bytes that were changed.
    #[error("segment {segment} is not authentic: wrong key or associated data, or damaged")]
    NotAuthentic {
        /// Its index, from 0.
        segment: u64,
    },
    /// The padding at the end of a file without authentication is wrong.
    #[error("bad padding: wrong passphrase, or damaged")]
    BadPadding,
    /// A file of this length cannot be in this format.
    #[error("too long for the format: {bytes} bytes")]
    TooLong {
        /// The length, in bytes.
        bytes: u64,
    },
    /// A keyset that is no Tink keyset of streaming keys.
    #[error("keyset: {0}")]
    Keyset(String),
    /// A recipient that is none.
    #[error("recipient: {0}")]
    Recipient(String),
    /// An identity that is none.
    #[error("identity: {0}")]
    Identity(String),
    /// A passphrase that cannot be one.
    #[error("passphrase: {0}")]
    Passphrase(&'static str),
    /// Understood, and not done by Evener.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The kernel gave no random bytes, or a library refused a call that should have worked.
    #[error("{0}")]
    Library(String),
}
