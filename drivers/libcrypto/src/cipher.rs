//! A cipher with its key set, and what stands around libcrypto's bare update: lengths, padding, tags.
//!
//! Padding is ours (`evener_core::padding`) and not libcrypto's: it saves `EVP_CipherFinal_ex` in each job,
//! its check does not depend on the text, and every update writes as many bytes as it reads.

use evener_core::job::{Memory, Parts, SharedSpan};
use evener_core::{BLOCK_BYTES, Direction, Family, JobError, Padding, Session, TAG_BYTES_MAX, padding};

use crate::ffi::{self, Refused, Span};

/// A context with its key set: what one session needs on one thread, and the plain loop of a benchmark.
///
/// Each run sets the IV and nothing else, as in the loop of a C program that knows what it does
/// (`EVP_CipherInit_ex2` without cipher and key, `EVP_CipherUpdate`; `EVP_CipherFinal_ex` for an AEAD only).
/// The key schedule is wiped when the context is dropped.
pub struct CipherContext {
    raw: ffi::CipherContext,
    ending: Ending,
    takes: Takes,
    /// Whether a run has an IV, nonce, counter or tweak.
    with_iv: bool,
}

/// What comes after the last byte of input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Nothing: whole blocks, or a stream.
    Nothing,
    /// Padding is written.
    Pad,
    /// Padding is checked and cut off.
    Unpad,
    /// A tag is made.
    Seal,
    /// A tag is checked.
    Open,
}

/// Lengths of input that a cipher takes.
#[derive(Clone, Copy)]
enum Takes {
    Any,
    WholeBlocks,
    /// One data unit of XTS.
    Unit,
}

impl CipherContext {
    /// A context for `session`, whose algorithm `cipher` implements.
    pub(crate) fn with_cipher(cipher: &ffi::Cipher, session: &Session) -> Result<Self, Refused> {
        let encrypts = session.direction() == Direction::Encrypt;
        let algorithm = session.algorithm();
        Ok(Self {
            raw: ffi::CipherContext::new(cipher, encrypts, session.key(), algorithm.iv_bytes())?,
            ending: Ending::of(session),
            takes: Takes::of(session),
            with_iv: algorithm.iv_bytes() > 0,
        })
    }

    /// Encrypts or decrypts `src` into `dst` with an algorithm that has no tag; `iv` counts up to
    /// [`iv_bytes`](evener_core::Algorithm::iv_bytes). Returns the bytes written at the start of `dst`.
    ///
    /// # Errors
    ///
    /// [`JobError::BadLength`] where `src` or `dst` does not fit ([`Job::lengths_fit`](evener_core::Job));
    /// [`JobError::BadPadding`]; [`JobError::Unsupported`] for an AEAD, which goes through
    /// [`CipherContext::run_parts`]. After an error `dst` may hold a part of the output.
    pub fn run(&mut self, iv: &[u8; 16], src: &[u8], dst: &mut [u8]) -> Result<usize, JobError> {
        self.run_without_tag(iv, Memory::Apart { src, dst })
    }

    /// As [`CipherContext::run`], from the first `input_bytes` of `space` to its start.
    ///
    /// # Errors
    ///
    /// As for [`CipherContext::run`].
    pub fn run_in_place(
        &mut self,
        iv: &[u8; 16],
        space: &mut [u8],
        input_bytes: usize,
    ) -> Result<usize, JobError> {
        self.run_without_tag(iv, Memory::InPlace { space, input_bytes })
    }

    fn run_without_tag(&mut self, iv: &[u8; 16], memory: Memory<'_>) -> Result<usize, JobError> {
        if matches!(self.ending, Ending::Seal | Ending::Open) {
            return Err(JobError::Unsupported);
        }
        self.run_parts(Parts { iv, aad: &[], memory, tag: &mut [0; TAG_BYTES_MAX] })
    }

    /// Runs a job that is taken apart, tag included, and returns the bytes written.
    ///
    /// # Errors
    ///
    /// As for [`CipherContext::run`], and [`JobError::NotAuthentic`], after which the output holds plaintext
    /// that must not be seen: clear it ([`Job::fail`](evener_core::Job::fail) does). After
    /// [`JobError::BadLength`] nothing was touched.
    #[inline]
    pub fn run_parts(&mut self, parts: Parts<'_>) -> Result<usize, JobError> {
        let Parts { iv, aad, memory, tag } = parts;
        if !self.fits(&memory) {
            return Err(JobError::BadLength);
        }
        self.raw.restart(self.with_iv.then_some(iv))?;
        match self.ending {
            Ending::Nothing => Ok(self.raw.update(whole(memory))?),
            Ending::Pad => Ok(self.pad(memory)?),
            Ending::Unpad => self.unpad(memory),
            Ending::Seal => Ok(self.seal(whole(memory), aad, tag)?),
            Ending::Open => self.open(whole(memory), aad, tag),
        }
    }

    /// As [`CipherContext::run`], in memory that another process may change at any time. Nothing is refused because of what stands there.
    ///
    /// # Errors
    ///
    /// As for [`CipherContext::run`]; [`JobError::Unsupported`] also where there is padding, which is looked at after it was decrypted.
    pub fn run_shared(&mut self, iv: &[u8; 16], span: SharedSpan<'_>) -> Result<usize, JobError> {
        if self.ending != Ending::Nothing {
            return Err(JobError::Unsupported);
        }
        let SharedSpan { src, dst } = span;
        if !self.fits_lengths(src.len(), dst.len()) {
            return Err(JobError::BadLength);
        }
        self.raw.restart(self.with_iv.then_some(iv))?;
        Ok(self.raw.update(Span::shared(src, &dst[..src.len()]))?)
    }

    fn pad(&mut self, memory: Memory<'_>) -> Result<usize, Refused> {
        match memory {
            Memory::InPlace { space, input_bytes } => {
                let space = &mut space[..padding::padded_bytes(input_bytes)];
                padding::pad(space, input_bytes);
                self.raw.update(Span::in_place(space))
            }
            Memory::Apart { src, dst } => {
                let space = &mut dst[..padding::padded_bytes(src.len())];
                let apart_bytes = if space.len() <= COPY_BYTES_MAX { 0 } else { space.len() - BLOCK_BYTES };
                let (front, tail) = space.split_at_mut(apart_bytes);
                let (text, end) = src.split_at(apart_bytes);
                self.raw.update(Span::apart(text, front))?;
                tail[..end.len()].copy_from_slice(end);
                padding::pad(tail, end.len());
                Ok(apart_bytes + self.raw.update(Span::in_place(tail))?)
            }
        }
    }

    fn unpad(&mut self, memory: Memory<'_>) -> Result<usize, JobError> {
        let padded = match memory {
            Memory::InPlace { space, input_bytes } => {
                let space = &mut space[..input_bytes];
                self.raw.update(Span::in_place(space))?;
                space
            }
            Memory::Apart { src, dst } => {
                let space = &mut dst[..src.len()];
                self.raw.update(Span::apart(src, space))?;
                space
            }
        };
        let (front, last) = padded.split_last_chunk().ok_or(JobError::BadLength)?;
        let text_bytes = padding::text_bytes(last).ok_or(JobError::BadPadding)?;
        Ok(front.len() + text_bytes)
    }

    fn seal(&mut self, span: Span<'_>, aad: &[u8], tag: &mut [u8; TAG_BYTES_MAX]) -> Result<usize, Refused> {
        self.raw.authenticate(aad)?;
        let written = self.raw.update(span)?;
        self.raw.finish()?;
        self.raw.read_tag(tag)?;
        Ok(written)
    }

    fn open(&mut self, span: Span<'_>, aad: &[u8], tag: &mut [u8; TAG_BYTES_MAX]) -> Result<usize, JobError> {
        self.raw.set_tag(tag)?;
        self.raw.authenticate(aad)?;
        let written = self.raw.update(span)?;
        self.raw.finish().map_err(|Refused| JobError::NotAuthentic)?;
        Ok(written)
    }

    /// Says the same as [`Job::lengths_fit`](evener_core::Job::lengths_fit), but knows the limit of XTS and leaves
    /// a padded text of no bytes to `unpad`.
    fn fits(&self, memory: &Memory<'_>) -> bool {
        let (input_bytes, space_bytes) = match memory {
            Memory::InPlace { space, input_bytes } => (*input_bytes, space.len()),
            Memory::Apart { src, dst } => (src.len(), dst.len()),
        };
        self.fits_lengths(input_bytes, space_bytes)
    }

    fn fits_lengths(&self, input_bytes: usize, space_bytes: usize) -> bool {
        let taken = match self.takes {
            Takes::Any => true,
            Takes::WholeBlocks => input_bytes % BLOCK_BYTES == 0,
            Takes::Unit => (BLOCK_BYTES..=XTS_BYTES_MAX).contains(&input_bytes),
        };
        let pads = self.ending == Ending::Pad;
        let output_bytes = if pads { padding::padded_bytes(input_bytes) } else { input_bytes };
        // A length in place beyond the space fits nowhere, so it ends here too.
        taken && output_bytes <= space_bytes
    }
}

impl Ending {
    fn of(session: &Session) -> Self {
        match (session.algorithm().is_aead(), session.padding(), session.direction()) {
            (true, _, Direction::Encrypt) => Self::Seal,
            (true, _, Direction::Decrypt) => Self::Open,
            (false, Padding::Pkcs7, Direction::Encrypt) => Self::Pad,
            (false, Padding::Pkcs7, Direction::Decrypt) => Self::Unpad,
            (false, Padding::None, _) => Self::Nothing,
        }
    }
}

impl Takes {
    fn of(session: &Session) -> Self {
        match session.algorithm().family() {
            Family::Ecb | Family::Cbc if Ending::of(session) != Ending::Pad => Self::WholeBlocks,
            Family::Xts => Self::Unit,
            _ => Self::Any,
        }
    }
}

/// All of the input and as much of the output; `fits` has seen that there is as much.
fn whole(memory: Memory<'_>) -> Span<'_> {
    match memory {
        Memory::InPlace { space, input_bytes } => Span::in_place(&mut space[..input_bytes]),
        Memory::Apart { src, dst } => Span::apart(src, &mut dst[..src.len()]),
    }
}

/// Up to this length a text that lies apart is copied and padded, and then runs in one call instead of two. A
/// guess: a call costs some 20 ns, copying 512 bytes some 10.
const COPY_BYTES_MAX: usize = 512;

/// Longest data unit of XTS: 2^20 blocks (IEEE 1619), which libcrypto enforces.
const XTS_BYTES_MAX: usize = BLOCK_BYTES << 20;
