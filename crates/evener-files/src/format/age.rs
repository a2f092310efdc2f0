//! The age format, version 1 (<https://c2sp.org/age>).
//!
//! File = header (text: recipients, and a MAC) || payload nonce (16 bytes) || chunks. The crate `age`
//! makes and reads headers; a witness takes down the file key on its way through, for the chunks are ours. The
//! payload's key is HKDF-SHA-256(file key, nonce, "payload"); a chunk is 64 KiB under ChaCha20-Poly1305.
//!
//! Armor (the file as text) is read, never written: [`is_armored`] -> [`dearmored`] -> the rest as usual.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::io::{self, BufRead, Read};

use ::age::{DecryptError, Decryptor, EncryptError, Encryptor, Identity, Recipient};
use age_core::format::{FILE_KEY_BYTES, FileKey, Stanza, read};
use age_core::primitives::hkdf;
use age_core::secrecy::ExposeSecret as _;
use evener_core::{Algorithm, Direction};
use zeroize::{Zeroize as _, Zeroizing};

use super::body::{Body, Ivs, Opened, Recognized, Sealing};
use super::segmentation::{Cut, Growth};
pub use crate::armor::{dearmored, is_armored};
use crate::error::FormatError;
use crate::keys::age::{Identities, Recipients, StanzaMatcher, WorkFactors};

const VERSION_LINE: &[u8] = b"age-encryption.org/v1\n";
const CHUNK_BYTES: u64 = 64 << 10;
const NONCE_BYTES: usize = 16;
/// Longest header that is read. Assumed, not measured: 4 MiB, room for 30 000 recipients; the format
/// has no limit.
const HEADER_BYTES_MAX: usize = 4 << 20;
pub(super) fn seal(recipients: &Recipients) -> Result<Sealing, FormatError> {
    let (first, others) =
        recipients.all().split_first().ok_or_else(|| recipient_error(EncryptError::MissingRecipients))?;
    let witness = Witness { inner: &**first, file_key: OnceCell::new() };
    let others = others.iter().map(|other| &**other as &dyn Recipient);
    let encryptor = Encryptor::with_recipients(std::iter::once(&witness as &dyn Recipient).chain(others));
    let mut header = Vec::new();
    encryptor.map_err(recipient_error)?.wrap_output(&mut header).map_err(library)?;
    let file_key =
        witness.file_key.into_inner().ok_or_else(|| FormatError::Library("no file key was made".into()))?;
    let body = body(&file_key, &header, Direction::Encrypt)?;
    Ok(Sealing { header, body })
}

/// The cut of a file that begins with `start`.
pub(super) fn cuts(start: &[u8]) -> Result<Opened<Cut>, FormatError> {
    let Some(header_bytes) = header_bytes(start)? else {
        return Ok(Opened::NeedMore { start_bytes: (start.len() * 2).clamp(4096, HEADER_BYTES_MAX) });
    };
    match header_bytes + NONCE_BYTES {
        start_bytes if start_bytes > start.len() => Ok(Opened::NeedMore { start_bytes }),
        header_bytes => Ok(Opened::Ready(vec![cut(header_bytes as u64)])),
    }
}

/// The cut of a file that may have been sealed before; of one without header where `start` is none of ours.
pub(super) fn cut_of_existing(start: &[u8]) -> Cut {
    let header_bytes = header_bytes(start).ok().flatten().map_or(0, |bytes| bytes + NONCE_BYTES);
    cut(header_bytes as u64)
}

pub(super) fn open(identities: &Identities, start: &[u8]) -> Result<Opened, FormatError> {
    let header = match header(start)? {
        Ok(header) => header,
        Err(start_bytes) => return Ok(Opened::NeedMore { start_bytes }),
    };
    let decryptor = decryptor(header)?;
    let witnesses: Vec<_> = identities
        .all()
        .iter()
        .map(|identity| Witness { inner: &**identity, file_key: OnceCell::new() })
        .collect();
    decryptor.decrypt(witnesses.iter().map(|witness| witness as &dyn Identity)).map_err(open_error)?;
    let file_key = witnesses.into_iter().find_map(|witness| witness.file_key.into_inner());
    let file_key = file_key.ok_or(FormatError::NoKeyFits)?;
    let body = body(&file_key, header, Direction::Decrypt)?;
    Ok(Opened::Ready(vec![body]))
}

/// Whether a file that begins with `start` was sealed for exactly these recipients.
pub(super) fn recognize(recipients: &Recipients, start: &[u8]) -> Result<Opened<Recognized>, FormatError> {
    let header = match header(start)? {
        Ok(header) => header,
        Err(start_bytes) => return Ok(Opened::NeedMore { start_bytes }),
    };
    let mut file_key = None;
    let recognized = match (are_for(stanzas(header)?, recipients.matchers(), &mut file_key), file_key) {
        (Recognized::Named, Some(file_key)) => {
            // The MAC binds the stanzas to the file key.
            decryptor(header)?
                .decrypt(std::iter::once(&Known(&file_key) as &dyn Identity))
                .map_err(open_error)?;
            Recognized::IfOpens(body(file_key.expose_secret(), header, Direction::Decrypt)?)
        }
        (recognized, _) => recognized,
    };
    Ok(Opened::Ready(vec![recognized]))
}

/// Whether stanzas are one for each of `matchers` and none for anyone else; a file key that they give is kept.
fn are_for(
    mut stanzas: Vec<Stanza>,
    matchers: &[StanzaMatcher],
    file_key: &mut Option<FileKey>,
) -> Recognized {
    stanzas.retain(|stanza| !stanza.tag.ends_with("-grease"));
    if stanzas.len() != matchers.len() {
        return Recognized::Other;
    }
    // Those that may be on several stanzas come last, and take what is left.
    let (vague, clear): (Vec<&StanzaMatcher>, Vec<&StanzaMatcher>) =
        matchers.iter().partition(|matcher| matches!(matcher, StanzaMatcher::Kind(_)));
    for matcher in clear.iter().chain(&vague) {
        match stanzas.iter().position(|stanza| matcher.matches(stanza, file_key)) {
            Some(place) => drop(stanzas.swap_remove(place)),
            None => return Recognized::Other,
        }
    }
    if vague.is_empty() { Recognized::Named } else { Recognized::Unknown }
}

fn stanzas(header: &[u8]) -> Result<Vec<Stanza>, FormatError> {
    let mut rest = &header[VERSION_LINE.len()..];
    let mut stanzas = Vec::new();
    while !rest.starts_with(b"---") {
        let (behind, stanza) = read::age_stanza(rest).map_err(|_| malformed("its header is damaged"))?;
        stanzas.push(stanza.into());
        rest = behind;
    }
    Ok(stanzas)
}

/// The header with the nonce at the start of a file; where `start` does not reach its end, how long it has to be.
fn header(start: &[u8]) -> Result<Result<&[u8], usize>, FormatError> {
    match cuts(start)? {
        Opened::Ready(cuts) => {
            let bytes = usize::try_from(cuts[0].header_bytes()).expect("it lies in memory");
            Ok(Ok(&start[..bytes]))
        }
        Opened::NeedMore { start_bytes } => Ok(Err(start_bytes)),
    }
}

fn decryptor(header: &[u8]) -> Result<Decryptor<Whole<'_>>, FormatError> {
    let whole = Whole { rest: header, header_bytes: header.len() - NONCE_BYTES };
    Decryptor::new_buffered(whole).map_err(open_error)
}

/// The chunks behind a header that ends with the payload nonce.
fn body(file_key: &[u8; FILE_KEY_BYTES], header: &[u8], direction: Direction) -> Result<Body, FormatError> {
    let mut key = hkdf(&header[header.len() - NONCE_BYTES..], b"payload", file_key);
    let body =
        Body::aead(cut(header.len() as u64), Ivs::Counted, Algorithm::ChaCha20Poly1305, direction, &key);
    key.zeroize();
    body
}

fn cut(header_bytes: u64) -> Cut {
    Cut::new(header_bytes, CHUNK_BYTES, CHUNK_BYTES, Growth::Tag { empty_last_is_read: false })
}

// ---- the text of a header

/// Length of the header without nonce, `None` where `start` does not reach its end.
///
/// Looks at lines only; what they say is the crate's to judge, but for one thing that the crate lets pass and
/// the specification does not: a stanza whose body has no last line shorter than 64 columns.
fn header_bytes(start: &[u8]) -> Result<Option<usize>, FormatError> {
    let compared = start.len().min(VERSION_LINE.len());
    if start[..compared] != VERSION_LINE[..compared] {
        return Err(malformed(wrong_start(start)));
    }
    let mut end = compared;
    let mut in_stanza = false;
    let looked_at = &start[..start.len().min(HEADER_BYTES_MAX)];
    for line in
        looked_at[compared..].split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"))
    {
        end += line.len();
        let begins = line.starts_with(b"-> ") || line.starts_with(b"---");
        match (begins, in_stanza) {
            (true, true) => return Err(malformed("a stanza of its header has no last line")),
            (true, false) if line.starts_with(b"---") => return Ok(Some(end)),
            (true, false) => in_stanza = true,
            (false, _) => in_stanza = in_stanza && line.len() > 64,
        }
    }
    if looked_at.len() == HEADER_BYTES_MAX {
        Err(malformed("its header is longer than 4 MiB"))
    } else {
        Ok(None)
    }
}

fn wrong_start(start: &[u8]) -> &'static str {
    if is_armored(start) {
        "it is armored"
    } else if start.starts_with(b"age-encryption.org/") {
        "its version is not v1"
    } else {
        "it does not start with the line age-encryption.org/v1"
    }
}

/// A header and the nonce as a reader that gives the header's lines at once. The crate asks for one line more
/// at a time and then parses from the start: with all lines in the first answer it parses once, and a long
/// header of a hostile hand costs linear time.
struct Whole<'a> {
    rest: &'a [u8],
    header_bytes: usize,
}

impl Read for Whole<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.rest.read(to)
    }
}

impl BufRead for Whole<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.rest)
    }

    fn consume(&mut self, bytes: usize) {
        self.rest.consume(bytes);
    }

    fn read_until(&mut self, _: u8, to: &mut Vec<u8>) -> io::Result<usize> {
        let (lines, rest) = self.rest.split_at(std::mem::take(&mut self.header_bytes));
        to.extend_from_slice(lines);
        self.rest = rest;
        Ok(lines.len())
    }
}

// ---- the witness, and recipients that need none

/// A recipient or identity that keeps a copy of the file key which passes through it.
struct Witness<'a, T: ?Sized> {
    inner: &'a T,
    file_key: OnceCell<Zeroizing<[u8; FILE_KEY_BYTES]>>,
}

impl<T: ?Sized> Witness<'_, T> {
    fn take_down(&self, file_key: &FileKey) {
        self.file_key.get_or_init(|| Zeroizing::new(*file_key.expose_secret()));
    }
}

impl Recipient for Witness<'_, dyn Recipient + Send + Sync> {
    fn wrap_file_key(&self, file_key: &FileKey) -> Result<(Vec<Stanza>, HashSet<String>), EncryptError> {
        self.take_down(file_key);
        self.inner.wrap_file_key(file_key)
    }
}

impl Identity for Witness<'_, dyn Identity + Send + Sync> {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, DecryptError>> {
        self.inner.unwrap_stanza(stanza)
    }

    fn unwrap_stanzas(&self, stanzas: &[Stanza]) -> Option<Result<FileKey, DecryptError>> {
        let unwrapped = self.inner.unwrap_stanzas(stanzas);
        if let Some(Ok(file_key)) = &unwrapped {
            self.take_down(file_key);
        }
        unwrapped
    }
}

/// The file key itself as an identity.
struct Known<'a>(&'a FileKey);

impl Identity for Known<'_> {
    fn unwrap_stanza(&self, _: &Stanza) -> Option<Result<FileKey, DecryptError>> {
        Some(Ok(FileKey::new(Box::new(*self.0.expose_secret()))))
    }
}

// ---- errors

fn malformed(fact: &'static str) -> FormatError {
    FormatError::Header { format: "age", fact }
}

fn library(error: io::Error) -> FormatError {
    FormatError::Library(error.to_string())
}

fn recipient_error(error: EncryptError) -> FormatError {
    FormatError::Recipient(match error {
        EncryptError::MissingRecipients => "none given".into(),
        EncryptError::MixedRecipientAndPassphrase => {
            "a passphrase goes alone, without other recipients".into()
        }
        EncryptError::IncompatibleRecipients { .. } => "these cannot be combined in one file".into(),
        other => other.to_string().replace('\n', " "),
    })
}

fn open_error(error: DecryptError) -> FormatError {
    match error {
        DecryptError::NoMatchingKeys | DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed => {
            FormatError::NoKeyFits
        }
        DecryptError::InvalidMac => malformed("the MAC of its header does not fit"),
        DecryptError::ExcessiveWork { required, target } => {
            FormatError::ExcessiveWork { required, cost: WorkFactors::cost(required), accepted: target }
        }
        _ => malformed("its header is damaged"),
    }
}

/// Room that a chunk needs in either form, in bytes.
pub(super) fn slot_bytes() -> u64 {
    cut(0).slot_bytes()
}
