//! A format says what a file's header holds and which jobs its segments are, and does no input or output.
//!
//! Writing: [`Sealer::seal`] -> [`Sealing`] = header + [`Body`]. Reading: [`Opener::open`] on the first bytes
//! of a file -> one or more [`Body`]. A body cuts the file ([`Body::cut`], [`Cut::of_plain`],
//! [`Cut::of_cipher`]) and arms the job of each [`Segment`]: session ([`Body::session`]), IV ([`Body::iv`]),
//! no associated data, and a tag that stands behind the segment's ciphertext ([`Cut::tag_bytes`]).

use zeroize::Zeroizing;

use crate::error::FormatError;
use crate::keys::age::{Identities, Recipients};

pub mod age;
mod body;
pub mod openssl_enc;
mod outside;
pub mod segmentation;
pub mod tink;

pub(crate) use body::Recognized;
pub use body::{Body, Iv, Opened, Sealing};
pub(crate) use outside::{HEADER_START_BYTES_MAX, Outside, outside};
pub use segmentation::{Cut, Growth, Layout, Segment};

/// A format with what it seals or opens files with; `A` is what the age format wants for that.
pub enum Format<A> {
    /// Tink streaming AEAD: sealed under the primary key of a keyset, opened under any that is enabled.
    Tink(tink::Tink),
    /// The age format: sealed for recipients or a passphrase, opened under any of some identities or passphrases.
    Age(A),
    /// What `openssl enc -pbkdf2` reads and writes. Not authenticated.
    OpensslEnc(openssl_enc::OpensslEnc),
}

/// What new files are sealed with.
pub type Sealer = Format<Recipients>;

/// What files are opened with.
pub type Opener = Format<Identities>;

/// What a record of runs goes by: which keys were asked for, without an order or a spelling.
pub(crate) struct KeyFacts {
    /// What nobody knows who has not the key; `None` where the key is public, or a passphrase that can be guessed.
    pub(crate) secret: Option<Zeroizing<[u8; 32]>>,
    /// Everything on which the output depends, but for passphrases.
    pub(crate) parts: Vec<Zeroizing<Vec<u8>>>,
    /// Whether a passphrase belongs to it, which is in neither.
    pub(crate) is_by_passphrase: bool,
}

impl KeyFacts {
    fn public<'t>(format: &str, direction: &str, names: impl Iterator<Item = &'t str>) -> Self {
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        let parts = [format, direction].into_iter().chain(names);
        let parts = parts.map(|part| Zeroizing::new(part.as_bytes().to_vec())).collect();
        Self { secret: None, parts, is_by_passphrase: false }
    }
}

impl<A> Format<A> {
    /// Room that a segment of any file needs in either form, in bytes.
    #[must_use]
    pub fn slot_bytes(&self) -> u64 {
        match self {
            Self::Tink(tink) => tink.slot_bytes(),
            Self::Age(_) => age::slot_bytes(),
            Self::OpensslEnc(_) => openssl_enc::OpensslEnc::slot_bytes(),
        }
    }
}

impl Sealer {
    /// Begins a new file under fresh random values (salt, nonce prefix or file key), so that no two files share
    /// a nonce under one key. A caller that writes a file again, or another plaintext to the same place, calls
    /// this again; a segment may be encrypted twice only from the same bytes.
    ///
    /// # Errors
    ///
    /// [`FormatError::Recipient`] where there are none or they cannot stand together, [`FormatError::Library`]
    /// where the kernel gives no random bytes.
    pub fn seal(&self) -> Result<Sealing, FormatError> {
        match self {
            Self::Tink(tink) => tink.seal(),
            Self::Age(recipients) => age::seal(recipients),
            Self::OpensslEnc(enc) => enc.seal(),
        }
    }

    /// What a record goes by.
    pub(crate) fn key_facts(&self) -> KeyFacts {
        match self {
            Self::Tink(tink) => tink.key_facts("seal"),
            Self::Age(recipients) => KeyFacts {
                is_by_passphrase: recipients.is_passphrase(),
                ..KeyFacts::public("age", "seal", recipients.names().iter().map(String::as_str))
            },
            Self::OpensslEnc(enc) => enc.key_facts("seal"),
        }
    }

    /// Whether each file costs the derivation of a key from a passphrase that is slow on purpose.
    pub(crate) fn is_slow(&self) -> bool {
        matches!(self, Self::Age(recipients) if recipients.is_passphrase())
    }

    /// Whether what this seals can be opened with it: not for recipients whose identities are elsewhere.
    pub(crate) fn opens_its_own(&self) -> bool {
        match self {
            Self::Tink(_) | Self::OpensslEnc(_) => true,
            Self::Age(recipients) => recipients.opens_its_own(),
        }
    }

    /// How files are cut that were sealed with this. `existing` is the start of such a file, where headers of one
    /// kind differ in length. Derives no key.
    pub(crate) fn cut_of(&self, existing: &[u8]) -> Cut {
        match self {
            Self::Tink(tink) => tink.primary_cut(),
            Self::Age(_) => age::cut_of_existing(existing),
            Self::OpensslEnc(_) => openssl_enc::cut(),
        }
    }

    /// Whether a file that begins with `existing` was sealed with this: under the key that seals, not another one
    /// that opens. `whole` says that the bytes are all of the file.
    ///
    /// # Errors
    ///
    /// As [`Opener::open`].
    pub(crate) fn recognize(&self, existing: &[u8], whole: bool) -> Result<Opened<Recognized>, FormatError> {
        let recognized = match self {
            Self::Tink(tink) => tink.open_primary(existing)?.map(Recognized::IfOpens),
            Self::Age(recipients) => age::recognize(recipients, existing)?,
            Self::OpensslEnc(enc) => enc.open(existing)?.map(Recognized::IfOpens),
        };
        recognized.or_truncated(existing, whole)
    }
}

impl Opener {
    /// Whether each file costs the derivation of a key from a passphrase that is slow on purpose.
    pub(crate) fn is_slow(&self) -> bool {
        matches!(self, Self::Age(identities) if identities.has_passphrase())
    }

    /// What a record goes by.
    pub(crate) fn key_facts(&self) -> KeyFacts {
        match self {
            Self::Tink(tink) => tink.key_facts("open"),
            Self::Age(identities) => KeyFacts {
                is_by_passphrase: identities.has_passphrase(),
                ..KeyFacts::public("age", "open", identities.names().iter().map(String::as_str))
            },
            Self::OpensslEnc(enc) => enc.key_facts("open"),
        }
    }

    /// Reads the header from `start`, the first bytes of a file; `whole` says that they are all of it.
    ///
    /// # Errors
    ///
    /// [`FormatError::Header`], [`FormatError::NoKeyFits`] or [`FormatError::Unsupported`];
    /// [`FormatError::Truncated`] where `whole` bytes end inside the header.
    pub fn open(&self, start: &[u8], whole: bool) -> Result<Opened, FormatError> {
        let opened = match self {
            Self::Tink(tink) => tink.open(start),
            Self::Age(identities) => age::open(identities, start),
            Self::OpensslEnc(enc) => enc.open(start),
        };
        opened?.or_truncated(start, whole)
    }
}
