//! The formats: what a file's header holds and which jobs its segments are. No input or output here.
//!
//! Writing: [`Sealer::seal`] -> [`Sealing`] = header + [`Body`]. Reading: [`Opener::open`] on the first bytes
//! of a file -> one or more [`Body`]. A body cuts the file ([`Body::cut`], [`Cut::of_plain`],
//! [`Cut::of_cipher`]) and arms the job of each [`Segment`]: session ([`Body::session`]), IV ([`Body::iv`]),
//! no associated data, and a tag that stands behind the segment's ciphertext ([`Cut::tag_bytes`]).

use std::sync::Arc;

use evener_core::{Algorithm, Direction, Padding, Session};

use crate::error::FormatError;
use crate::keys::age::{Identities, Recipients};

pub mod age;
pub mod openssl_enc;
pub mod segmentation;
pub mod tink;

pub use segmentation::{Cut, Growth, Layout, Segment};

/// What new files are sealed with.
pub enum Sealer {
    /// Tink streaming AEAD under the primary key of a keyset.
    Tink(tink::Tink),
    /// The age format for recipients or a passphrase.
    Age(Recipients),
    /// What `openssl enc -pbkdf2` reads. Not authenticated.
    OpensslEnc(openssl_enc::OpensslEnc),
}

impl Sealer {
    /// Room that a segment needs in either form, in bytes.
    #[must_use]
    pub fn slot_bytes(&self) -> u64 {
        match self {
            Self::Tink(tink) => tink.slot_bytes(),
            Self::Age(_) => age::slot_bytes(),
            Self::OpensslEnc(_) => openssl_enc::OpensslEnc::slot_bytes(),
        }
    }

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

/// What the header of a file tells of what the file was sealed with.
#[derive(Debug)]
pub(crate) enum Recognized {
    /// Something else.
    Other,
    /// This, if segment 0 opens under the body.
    IfOpens(Body),
    /// This: the header names it. Nothing here opens the file.
    Named,
    /// This, or something else that looks alike in a header.
    Unknown,
}

/// What files are opened with.
pub enum Opener {
    /// Tink streaming AEAD under any enabled key of a keyset.
    Tink(tink::Tink),
    /// The age format under any of some identities or passphrases.
    Age(Identities),
    /// What `openssl enc -pbkdf2` wrote. Not authenticated.
    OpensslEnc(openssl_enc::OpensslEnc),
}

impl Opener {
    /// Room that a segment of any file needs in either form, in bytes.
    #[must_use]
    pub fn slot_bytes(&self) -> u64 {
        match self {
            Self::Tink(tink) => tink.slot_bytes(),
            Self::Age(_) => age::slot_bytes(),
            Self::OpensslEnc(_) => openssl_enc::OpensslEnc::slot_bytes(),
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

    /// How a file that begins with `start` may be cut: as [`Opener::open`], but derives no key and tries none, so
    /// that a question for lengths costs nothing. With an age file this says nothing about who may open it.
    pub(crate) fn cuts(&self, start: &[u8], whole: bool) -> Result<Opened<Cut>, FormatError> {
        let cuts = match self {
            Self::Tink(tink) => tink.cuts(start),
            Self::Age(_) => age::cuts(start),
            Self::OpensslEnc(_) => openssl_enc::cuts(start),
        };
        cuts?.or_truncated(start, whole)
    }
}

/// A file that is being written.
#[derive(Debug)]
pub struct Sealing {
    /// The bytes before segment 0, as many as [`Cut::header_bytes`] says.
    pub header: Vec<u8>,
    /// Its segments.
    pub body: Body,
}

/// What the first bytes of a file told: something for each key that may be the right one.
#[derive(Debug)]
pub enum Opened<T = Body> {
    /// The header is longer: come back with at least so many bytes from the start of the file.
    NeedMore {
        /// Bytes, more than were given.
        start_bytes: usize,
    },
    /// The header was read. Where there is more than one candidate (several Tink keys), the right one is the
    /// one under which segment 0 authenticates: try them in order, each on the same captured bytes. Their
    /// cuts may differ. Never empty.
    Ready(Vec<T>),
}

impl<T> Opened<T> {
    /// The same with something made of each candidate.
    fn map<U>(self, make: impl Fn(T) -> U) -> Opened<U> {
        match self {
            Self::NeedMore { start_bytes } => Opened::NeedMore { start_bytes },
            Self::Ready(found) => Opened::Ready(found.into_iter().map(make).collect()),
        }
    }

    /// There is no more to be had of a file that is `whole`.
    fn or_truncated(self, start: &[u8], whole: bool) -> Result<Self, FormatError> {
        match self {
            Self::NeedMore { .. } if whole => {
                Err(FormatError::Truncated { cipher_bytes: start.len() as u64, place: "header" })
            }
            opened => Ok(opened),
        }
    }
}

/// The segments of one file: how it is cut, and what each segment's job is armed with.
#[derive(Clone, Debug)]
pub struct Body {
    cut: Cut,
    inner: Arc<Session>,
    last: Arc<Session>,
    ivs: Ivs,
}

/// How the IV of a segment follows from its place.
#[derive(Clone, Copy, Debug)]
enum Ivs {
    /// Seven random bytes, the index in 32 bits, big end first, and 1 for the last segment or 0.
    Prefixed([u8; 7]),
    /// The index in 88 bits, big end first, and 1 for the last segment or 0.
    Counted,
    /// These bytes for segment 0; ciphertext for the others.
    Chained([u8; 16]),
}

/// The IV of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iv {
    /// Known from the place; the algorithm's [`Algorithm::iv_bytes`] first bytes count.
    Known([u8; 16]),
    /// The last 16 bytes of ciphertext of the segment before. Encryption is therefore serial within a file;
    /// decryption is not, because these bytes stand right before the segment in the file.
    PreviousBlock,
}

impl Body {
    /// A body of AEAD segments under one key.
    fn aead(
        cut: Cut,
        ivs: Ivs,
        algorithm: Algorithm,
        direction: Direction,
        key: &[u8],
    ) -> Result<Self, FormatError> {
        let session = Arc::new(session(algorithm, direction, Padding::None, key)?);
        Ok(Self { cut, inner: Arc::clone(&session), last: session, ivs })
    }

    /// A body of slices of one CBC chain, the last one padded.
    fn chained(
        cut: Cut,
        iv: [u8; 16],
        algorithm: Algorithm,
        direction: Direction,
        key: &[u8],
    ) -> Result<Self, FormatError> {
        let padded_by = |padding| session(algorithm, direction, padding, key).map(Arc::new);
        let (inner, last) = (padded_by(Padding::None)?, padded_by(Padding::Pkcs7)?);
        Ok(Self { cut, inner, last, ivs: Ivs::Chained(iv) })
    }

    /// How the file is cut.
    #[must_use]
    pub const fn cut(&self) -> &Cut {
        &self.cut
    }

    /// The session of a segment; the last one of a padded file has its own.
    #[must_use]
    pub const fn session(&self, last: bool) -> &Arc<Session> {
        if last { &self.last } else { &self.inner }
    }

    /// The IV of segment `index`; `last` says that no segment follows.
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLong`] where the format does not count so far. No segment of a [`Layout`] is; a
    /// stream of unknown length may get there.
    pub fn iv(&self, index: u64, last: bool) -> Result<Iv, FormatError> {
        let mut iv = [0; 16];
        match self.ivs {
            Ivs::Prefixed(prefix) => {
                let too_long = |_| FormatError::TooLong { bytes: self.cut.full(index).cipher.end };
                let counter = u32::try_from(index).map_err(too_long)?;
                iv[..7].copy_from_slice(&prefix);
                iv[7..11].copy_from_slice(&counter.to_be_bytes());
            }
            Ivs::Counted => iv[3..11].copy_from_slice(&index.to_be_bytes()),
            Ivs::Chained(first) if index == 0 => return Ok(Iv::Known(first)),
            Ivs::Chained(_) => return Ok(Iv::PreviousBlock),
        }
        iv[11] = last.into();
        Ok(Iv::Known(iv))
    }

    /// Whether each segment needs the ciphertext of the one before.
    pub(crate) fn is_chained(&self) -> bool {
        self.iv(1, false) == Ok(Iv::PreviousBlock)
    }
}

fn session(
    algorithm: Algorithm,
    direction: Direction,
    padding: Padding,
    key: &[u8],
) -> Result<Session, FormatError> {
    Session::new(algorithm, direction, padding, key).map_err(|error| FormatError::Library(error.to_string()))
}
