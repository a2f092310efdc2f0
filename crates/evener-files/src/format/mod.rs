//! A format says what a file's header holds and which jobs its segments are, and does no input or output.
//!
//! Writing: [`Sealer::seal`] -> [`Sealing`] = header + [`Body`]. Reading: [`Opener::open`] on the first bytes
//! of a file -> one or more [`Body`]. A body cuts the file ([`Body::cut`], [`Cut::of_plain`],
//! [`Cut::of_cipher`]) and arms the job of each [`Segment`]: session ([`Body::session`]), IV ([`Body::iv`]),
//! no associated data, and a tag that stands behind the segment's ciphertext ([`Cut::tag_bytes`]).

use evener_core::Algorithm;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::armor::Armor;
use crate::error::FormatError;
use crate::keys::age::{Identities, Recipients};

pub mod age;
mod body;
mod header_view;
mod mac;
pub mod openssl_enc;
pub mod segmentation;
mod serial;
pub mod tink;

pub(crate) use body::Recognized;
pub use body::{Body, Iv, Opened, Sealing};
pub(crate) use header_view::{HEADER_START_BYTES_MAX, HeaderView, outside};
pub use mac::SegmentMac;
pub use segmentation::{Cut, Growth, Layout, Segment};
pub use serial::{SerialCipher, SerialText};

/// A format with what it seals or opens files with; `A` is what the age format wants for that.
pub enum Format<A> {
    /// Tink streaming AEAD: sealed under the primary key of a keyset, opened under any that is enabled.
    Tink(tink::Tink),
    /// The age format: sealed for recipients or a passphrase, opened under any of some identities or passphrases.
    Age(A),
    /// What `openssl enc` reads and writes. Not authenticated.
    OpensslEnc(openssl_enc::OpensslEnc),
}

/// What new files are sealed with.
pub type Sealer = Format<Recipients>;

/// What files are opened with.
pub type Opener = Format<Identities>;

/// What a record of runs goes by: which keys were asked for, without an order or a spelling.
pub(crate) struct KeyFacts {
    /// What is not known without the key; `None` where the key is public, or a passphrase that can be guessed.
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

    /// A digest of these and of `about` for one `purpose`, under what is secret, or under `salt` where nothing is.
    pub(crate) fn digest(&self, purpose: &[u8], salt: &[u8], about: &[&[u8]]) -> [u8; 32] {
        let key = self.secret.as_ref().map_or(salt, |secret| &secret[..]);
        let mut digest = Hmac::<Sha256>::new_from_slice(key).expect("it takes keys of any length");
        digest.update(purpose);
        // Each part with its length, so that no two are one text.
        for part in self.parts.iter().map(|part| &part[..]).chain(about.iter().copied()) {
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.finalize().into_bytes().into()
    }
}

impl<A> Format<A> {
    /// Space that a segment of any file needs in either form, in bytes.
    #[must_use]
    pub fn slot_bytes(&self) -> u64 {
        match self {
            Self::Tink(tink) => tink.slot_bytes(),
            Self::Age(_) => age::slot_bytes(),
            Self::OpensslEnc(enc) => enc.slot_bytes(),
        }
    }
}

impl<A> Format<A> {
    /// The algorithms of its segments, as far as drivers have them.
    #[must_use]
    pub fn algorithms(&self) -> Vec<Algorithm> {
        match self {
            Self::Tink(tink) => tink.algorithms(),
            Self::Age(_) => vec![Algorithm::ChaCha20Poly1305],
            Self::OpensslEnc(enc) => enc.algorithm().into_iter().collect(),
        }
    }

    /// The text form that files of the format may have.
    pub(crate) const fn armor(&self) -> Option<Armor> {
        match self {
            Self::Tink(_) => None,
            Self::Age(_) => Some(Armor::Age),
            Self::OpensslEnc(enc) => Some(enc.armor()),
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

    /// As [`Sealer::seal`], but under values that the key and `about` decide, so that who has both begins the same file. `about` tells the plaintext
    /// from any other that was or will be sealed so under this key, and pins each byte of it: else two texts go under one nonce.
    ///
    /// # Errors
    ///
    /// [`FormatError::Unsupported`] where the format has a key for each file that no one else could make.
    pub(crate) fn seal_about(&self, about: &[&[u8]]) -> Result<Sealing, FormatError> {
        match self {
            Self::Tink(tink) => tink.seal_about(about),
            Self::Age(_) | Self::OpensslEnc(_) => {
                Err(FormatError::Unsupported("a file of this format that several machines begin".into()))
            }
        }
    }

    /// What a record goes by.
    pub(crate) fn key_facts(&self) -> KeyFacts {
        match self {
            Self::Tink(tink) => tink.key_facts("seal"),
            Self::Age(recipients) => KeyFacts {
                is_by_passphrase: recipients.is_passphrase(),
                ..KeyFacts::public("age", "seal", recipients.names())
            },
            Self::OpensslEnc(enc) => enc.key_facts("seal"),
        }
    }

    /// Whether each file costs the derivation of a key from a passphrase that is slow on purpose.
    #[must_use]
    pub fn is_slow(&self) -> bool {
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
            Self::OpensslEnc(enc) => enc.cut(),
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
    #[must_use]
    pub fn is_slow(&self) -> bool {
        matches!(self, Self::Age(identities) if identities.has_passphrase())
    }

    /// What a record goes by.
    pub(crate) fn key_facts(&self) -> KeyFacts {
        match self {
            Self::Tink(tink) => tink.key_facts("open"),
            Self::Age(identities) => KeyFacts {
                is_by_passphrase: identities.has_passphrase(),
                ..KeyFacts::public("age", "open", identities.names())
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

    /// What to say where no candidate opens segment 0.
    pub(crate) fn no_key_fits(&self) -> FormatError {
        match self {
            Self::Tink(tink) => tink.no_key_fits(),
            Self::Age(_) | Self::OpensslEnc(_) => FormatError::NoKeyFits { facts: String::new() },
        }
    }
}
