//! What a header gives: the body of a file, which arms the job of each of its segments, or the candidates for one.

use std::sync::Arc;

use evener_core::{Algorithm, Direction, Padding, Session};

use super::mac::SegmentMac;
use super::segmentation::Cut;
use super::serial::SerialCipher;
use crate::error::FormatError;

/// A file that is being written.
#[derive(Debug)]
pub struct Sealing {
    /// The bytes before segment 0, as many as [`Cut::header_bytes`] says.
    pub header: Vec<u8>,
    /// Its segments.
    pub body: Body,
}

/// What was read from the first bytes of a file: something for each key that may be the right one.
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
    pub(super) fn map<U>(self, make: impl Fn(T) -> U) -> Opened<U> {
        match self {
            Self::NeedMore { start_bytes } => Opened::NeedMore { start_bytes },
            Self::Ready(found) => Opened::Ready(found.into_iter().map(make).collect()),
        }
    }

    /// There is no more to be had of a file that is `whole`.
    pub(super) fn or_truncated(self, start: &[u8], whole: bool) -> Result<Self, FormatError> {
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
    work: Work,
    ivs: Ivs,
}

/// Who works on the segments.
#[derive(Clone, Debug)]
enum Work {
    /// Drivers, under these sessions.
    Jobs { inner: Arc<Session>, last: Arc<Session>, mac: Option<Arc<SegmentMac>> },
    /// One cipher, from the first byte to the last.
    Serial(Arc<SerialCipher>),
}

/// How the IV of a segment follows from its place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ivs {
    /// Seven random bytes, the index in 32 bits, big end first, and 1 for the last segment or 0.
    Prefixed([u8; 7]),
    /// The index in 88 bits, big end first, and 1 for the last segment or 0.
    Counted,
    /// These bytes for segment 0; ciphertext for the others.
    Chained([u8; 16]),
    /// These bytes plus the number of blocks before the segment, of which each has so many; as a number, big end first.
    Blocks([u8; 16], u64),
    /// None.
    None,
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
    /// A body of segments under one key, none of them padded.
    pub(super) fn unpadded(cut: Cut, ivs: Ivs, key: CipherKey<'_>) -> Result<Self, FormatError> {
        let session = Arc::new(key.session(Padding::None)?);
        Ok(Self { cut, work: Work::Jobs { inner: Arc::clone(&session), last: session, mac: None }, ivs })
    }

    /// The same with segments that are authenticated apart from their cipher.
    pub(super) fn with_mac(self, mac: SegmentMac) -> Self {
        let work = match self.work {
            Work::Jobs { inner, last, .. } => Work::Jobs { inner, last, mac: Some(Arc::new(mac)) },
            serial @ Work::Serial(_) => serial,
        };
        Self { work, ..self }
    }

    /// A body that is worked on from its first byte to its last.
    pub(super) fn serial(cut: Cut, cipher: SerialCipher) -> Self {
        Self { cut, work: Work::Serial(Arc::new(cipher)), ivs: Ivs::None }
    }

    /// A body of slices of blocks, the last one padded: a CBC chain, or blocks by themselves.
    pub(super) fn padded(cut: Cut, ivs: Ivs, key: CipherKey<'_>) -> Result<Self, FormatError> {
        let (inner, last) = (Arc::new(key.session(Padding::None)?), Arc::new(key.session(Padding::Pkcs7)?));
        Ok(Self { cut, work: Work::Jobs { inner, last, mac: None }, ivs })
    }

    /// How the file is cut.
    #[must_use]
    pub const fn cut(&self) -> &Cut {
        &self.cut
    }

    /// The session of a segment; the last one of a padded file has its own.
    ///
    /// # Panics
    ///
    /// Where the body is [serial](Body::as_serial).
    #[must_use]
    pub fn session(&self, is_last: bool) -> &Arc<Session> {
        match &self.work {
            Work::Jobs { last, .. } if is_last => last,
            Work::Jobs { inner, .. } => inner,
            Work::Serial(_) => unreachable!("a serial body has no jobs"),
        }
    }

    /// What authenticates segments, where their cipher does not.
    #[must_use]
    pub fn mac(&self) -> Option<&SegmentMac> {
        match &self.work {
            Work::Jobs { mac, .. } => mac.as_deref(),
            Work::Serial(_) => None,
        }
    }

    /// The cipher of a body that no driver works on, but one thread from the first byte to the last.
    #[must_use]
    pub fn as_serial(&self) -> Option<&SerialCipher> {
        match &self.work {
            Work::Serial(cipher) => Some(cipher),
            Work::Jobs { .. } => None,
        }
    }

    /// The IV of segment `index`; `last` says that no segment follows.
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLong`] where the format does not count so far. No segment of a [`Layout`](super::Layout) is; a
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
            Ivs::Blocks(first, blocks) => {
                let before = u128::from(index) * u128::from(blocks);
                return Ok(Iv::Known(u128::from_be_bytes(first).wrapping_add(before).to_be_bytes()));
            }
            Ivs::None => return Ok(Iv::Known(iv)),
        }
        iv[11] = last.into();
        Ok(Iv::Known(iv))
    }

    /// Whether each segment needs the ciphertext of the one before.
    pub(crate) fn is_chained(&self) -> bool {
        self.iv(1, false) == Ok(Iv::PreviousBlock)
    }
}

/// What sessions of a body are made of.
#[derive(Clone, Copy)]
pub(super) struct CipherKey<'k> {
    pub(super) algorithm: Algorithm,
    pub(super) direction: Direction,
    pub(super) key: &'k [u8],
}

impl CipherKey<'_> {
    fn session(self, padding: Padding) -> Result<Session, FormatError> {
        let session = Session::new(self.algorithm, self.direction, padding, self.key);
        session.map_err(|error| FormatError::Library(error.to_string()))
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
